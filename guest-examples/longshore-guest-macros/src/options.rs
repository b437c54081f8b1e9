//! What stands in `#[tool(...)]`: on the function, on an argument or field, on a type.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser as _;
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, Expr, ExprLit, Ident, Lit, LitBool, LitStr, Path, Result, Token};

/// The options of a tool.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) title: Option<LitStr>,
    /// The variant of `TaskMode`.
    pub(crate) task_mode: Option<Ident>,
    /// Variants of `Requirement`.
    pub(crate) requires: Vec<Ident>,
    pub(crate) is_output: bool,
    pub(crate) deadline_ms: Option<Expr>,
    /// The function that goes on from a restart point.
    pub(crate) restart: Option<Path>,
    /// Members of MCP's tool annotations.
    pub(crate) hints: Vec<(&'static str, bool)>,
}

const TOOL_OPTIONS: &str = "name, title, task_mode, requires, output, deadline_ms, read_only, idempotent, \
    destructive, open_world, restart";

const MODES: [(&str, &str); 4] = [
    ("never", "Never"),
    ("on-detach", "OnDetach"),
    ("auto", "Auto"),
    ("always", "Always"),
];

const REQUIREMENTS: [(&str, &str); 7] = [
    ("tasks", "Tasks"),
    ("elicitation", "Elicitation"),
    ("elicitation.form", "ElicitationForm"),
    ("elicitation.url", "ElicitationUrl"),
    ("sampling", "Sampling"),
    ("sampling.tools", "SamplingTools"),
    ("roots", "Roots"),
];

const HINTS: [(&str, &str); 4] = [
    ("read_only", "readOnlyHint"),
    ("idempotent", "idempotentHint"),
    ("destructive", "destructiveHint"),
    ("open_world", "openWorldHint"),
];

impl ToolOptions {
    pub(crate) fn read(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.read_one(&meta)).parse2(tokens)?;
        Ok(options)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(tool_name(meta)?);
        } else if meta.path.is_ident("title") {
            self.title = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("task_mode") {
            let word: LitStr = meta.value()?.parse()?;
            self.task_mode = Some(one_of(&MODES, &word, "task mode")?);
        } else if meta.path.is_ident("requires") {
            let words;
            syn::parenthesized!(words in meta.input);
            for word in words.parse_terminated(<LitStr as syn::parse::Parse>::parse, Token![,])? {
                self.requires
                    .push(one_of(&REQUIREMENTS, &word, "requirement")?);
            }
        } else if meta.path.is_ident("output") {
            self.is_output = true;
        } else if meta.path.is_ident("deadline_ms") {
            self.deadline_ms = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("restart") {
            self.restart = Some(meta.value()?.parse()?);
        } else if let Some((_, hint)) = HINTS.iter().find(|(word, _)| meta.path.is_ident(word)) {
            let is_so = if meta.input.peek(Token![=]) {
                meta.value()?.parse::<LitBool>()?.value
            } else {
                true
            };
            self.hints.push((hint, is_so));
        } else {
            return Err(unknown(meta, "of a tool", TOOL_OPTIONS));
        }
        Ok(())
    }
}

/// The name of a tool, as the contract allows it.
pub(crate) fn tool_name(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    let name: LitStr = meta.value()?.parse()?;
    let text = name.value();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if (1..=64).contains(&text.len()) && text.bytes().all(is_allowed) {
        Ok(name)
    } else {
        Err(Error::new(
            name.span(),
            "a tool's name is 1 to 64 of `A-Za-z0-9_.-`",
        ))
    }
}

fn one_of(known: &[(&str, &str)], word: &LitStr, what: &str) -> Result<Ident> {
    let text = word.value();
    match known.iter().find(|(name, _)| *name == text) {
        Some((_, variant)) => Ok(Ident::new(variant, word.span())),
        None => {
            let names: Vec<String> = known.iter().map(|(name, _)| format!("{name:?}")).collect();
            let text = format!("there is no {what} {text:?}: {}", names.join(", "));
            Err(Error::new(word.span(), text))
        }
    }
}

/// What an argument, or a field of a struct, adds to the schema of its type.
#[derive(Default)]
pub(crate) struct MemberOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) default: Option<Absent>,
    /// Keywords of JSON Schema and their values.
    pub(crate) keywords: Vec<(&'static str, Expr)>,
}

/// What stands in for a member that was left out.
pub(crate) enum Absent {
    /// The default of its type.
    OfType,
    /// This value.
    Value(Box<Expr>),
}

const MEMBER_OPTIONS: &str = "name, default, title, minimum, maximum, min_length, max_length, min_items, max_items, \
    pattern, format, header";

const KEYWORDS: [(&str, &str); 10] = [
    ("title", "title"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("pattern", "pattern"),
    ("format", "format"),
    ("header", "x-mcp-header"),
];

impl MemberOptions {
    /// Whether there are none but a name.
    pub(crate) fn is_bare(&self) -> bool {
        self.default.is_none() && self.keywords.is_empty()
    }

    /// Reads the options among the attributes and takes them out.
    pub(crate) fn take(attributes: &mut Vec<Attribute>) -> Result<Self> {
        let mut options = Self::default();
        for attribute in attributes.extract_if(.., |attribute| attribute.path().is_ident("tool")) {
            attribute.parse_nested_meta(|meta| options.read_one(&meta))?;
        }
        Ok(options)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("default") {
            self.default = Some(if meta.input.peek(Token![=]) {
                Absent::Value(Box::new(meta.value()?.parse()?))
            } else {
                Absent::OfType
            });
        } else if let Some((_, key)) = KEYWORDS.iter().find(|(word, _)| meta.path.is_ident(word)) {
            self.keywords.push((key, meta.value()?.parse()?));
        } else {
            return Err(unknown(meta, "here", MEMBER_OPTIONS));
        }
        Ok(())
    }

    /// The value for the schema's `default`: only what stands there as a literal has surely the same form in JSON.
    pub(crate) fn shown_default(&self) -> Option<&Expr> {
        match &self.default {
            Some(Absent::Value(expr)) if is_literal(expr) => Some(expr),
            _ => None,
        }
    }

    /// Calls on a `Member` that add all this to it.
    pub(crate) fn additions(&self, doc: Option<&str>) -> TokenStream {
        let keywords = self
            .keywords
            .iter()
            .map(|(key, value)| quote!(.with(#key, #value)));
        let default = self
            .shown_default()
            .map(|value| quote!(.with("default", #value)));
        let doc = doc.map(|text| quote!(.with("description", #text)));
        let optional = self.default.as_ref().map(|_| quote!(.optional()));
        quote!(#(#keywords)* #default #doc #optional)
    }
}

fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(ExprLit { lit, .. }) => {
            matches!(
                lit,
                Lit::Str(_) | Lit::Int(_) | Lit::Float(_) | Lit::Bool(_)
            )
        }
        Expr::Unary(unary) => matches!(unary.op, syn::UnOp::Neg(_)) && is_literal(&unary.expr),
        _ => false,
    }
}

/// An option that there is not, and those that there are.
pub(crate) fn unknown(meta: &ParseNestedMeta<'_>, place: &str, known: &str) -> Error {
    let path = meta.path.to_token_stream();
    Error::new(
        meta.path.span(),
        format!("there is no option `{path}` {place}: there are {known}"),
    )
}
