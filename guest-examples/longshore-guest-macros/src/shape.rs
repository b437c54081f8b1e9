//! A struct or an enum becomes the type of an argument, or of a result.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Data, DataEnum, DeriveInput, Error, Fields, FieldsNamed, Ident, LitStr, Result, Type,
};

use crate::options::{MemberOptions, unknown};
use crate::text::{self, Case};
use crate::tool::{Errors, take};

/// What the type is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is read from what a caller gives.
    Argument,
    /// It is written by serde, whose attributes decide on names.
    Result,
}

pub(crate) fn expand(item: TokenStream, to: Use) -> TokenStream {
    syn::parse2(item)
        .and_then(|input| implement(input, to))
        .unwrap_or_else(Error::into_compile_error)
}

fn implement(input: DeriveInput, to: Use) -> Result<TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(Error::new_spanned(
            &input.generics,
            "a generic type has no one schema: write out the types of its fields",
        ));
    }
    let case = case(&input.attrs, to)?;
    let doc = text::doc(&input.attrs);
    match input.data {
        Data::Struct(data) => match data.fields {
            Fields::Named(fields) => of_struct(&input.ident, fields, case, doc, to),
            Fields::Unnamed(_) | Fields::Unit => Err(Error::new_spanned(
                &input.ident,
                "its values are JSON objects: give the struct fields with names",
            )),
        },
        Data::Enum(data) => of_enum(&input.ident, data, case, doc, to),
        Data::Union(_) => Err(Error::new_spanned(
            &input.ident,
            "a union has no form in JSON: use a struct or an enum",
        )),
    }
}

struct Field {
    ident: Ident,
    name: LitStr,
    ty: Type,
    options: MemberOptions,
    doc: Option<String>,
    /// Serde may leave it out.
    is_skipped: bool,
}

fn of_struct(
    ident: &Ident,
    fields: FieldsNamed,
    case: Case,
    doc: Option<String>,
    to: Use,
) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let fields: Vec<Field> = fields
        .named
        .into_iter()
        .filter_map(|field| errors.keep(read_field(field, case, to)))
        .collect();
    errors.finish()?;

    let members = fields.iter().map(|Field { name, ty, options, doc, is_skipped, .. }| {
        let additions = options.additions(doc.as_deref());
        let optional = is_skipped.then(|| quote!(.optional()));
        let of = match to {
            Use::Argument => format_ident!("taken"),
            // Serde writes `null` for what is not there, unless it is told to leave it out.
            Use::Result if *is_skipped => format_ident!("given_or_left_out"),
            Use::Result => format_ident!("given"),
        };
        quote_spanned!(ty.span()=> ::longshore_guest::private::Member::#of::<#ty>(#name) #additions #optional)
    });
    let describe =
        doc.map(|text| quote!(let schema = ::longshore_guest::private::described(schema, #text);));
    let schema = quote! {
        impl ::longshore_guest::Schema for #ident {
            fn schema() -> ::longshore_guest::private::Value {
                let schema = ::longshore_guest::private::object(::std::vec![#(#members),*]);
                #describe
                schema
            }
        }
    };
    if to == Use::Result {
        return Ok(schema);
    }
    let members = format_ident!("members");
    let read = if fields.is_empty() {
        quote!(::longshore_guest::private::Members::of(value)?;)
    } else {
        quote!(let mut #members = ::longshore_guest::private::Members::of(value)?;)
    };
    let idents = fields.iter().map(|field| &field.ident);
    let values = fields
        .iter()
        .map(|field| take(&members, &field.name, &field.ty, &field.options));
    Ok(quote! {
        #schema
        impl ::longshore_guest::Argument for #ident {
            fn from_json(value: ::longshore_guest::private::Value) -> ::core::result::Result<Self, ::longshore_guest::argument::Mismatch> {
                #read
                ::core::result::Result::Ok(Self { #(#idents: #values),* })
            }
        }
    })
}

fn read_field(mut field: syn::Field, case: Case, to: Use) -> Result<Field> {
    let doc = text::doc(&field.attrs);
    let mut options = MemberOptions::take(&mut field.attrs)?;
    let mut is_skipped = false;
    if to == Use::Result {
        if options.default.is_some() {
            return Err(Error::new_spanned(
                &field,
                "a result has no defaults: all that it says is given",
            ));
        }
        let serde = Serde::read(&field.attrs)?;
        options.name = serde.rename.or(options.name);
        is_skipped = serde.is_skipped;
    }
    let ident = field
        .ident
        .ok_or_else(|| Error::new_spanned(&field.ty, "the field needs a name"))?;
    let name = name(options.name.as_ref(), &ident, case);
    Ok(Field {
        ident,
        name,
        ty: field.ty,
        options,
        doc,
        is_skipped,
    })
}

fn of_enum(
    ident: &Ident,
    data: DataEnum,
    case: Case,
    doc: Option<String>,
    to: Use,
) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let mut idents = Vec::new();
    let mut names = Vec::new();
    for mut variant in data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            let text = "a choice is one of several words, without fields: take what belongs to it as an argument of its own";
            errors.add(Error::new_spanned(&variant, text));
            continue;
        }
        let Some(options) = errors.keep(MemberOptions::take(&mut variant.attrs)) else {
            continue;
        };
        if !options.is_bare() {
            let text = "a choice has no options but `name`";
            errors.add(Error::new_spanned(&variant.ident, text));
        }
        let mut given = options.name;
        if to == Use::Result {
            given = errors
                .keep(Serde::read(&variant.attrs))
                .and_then(|serde| serde.rename)
                .or(given);
        }
        names.push(name(given.as_ref(), &variant.ident, case));
        idents.push(variant.ident);
    }
    if idents.is_empty() {
        errors.add(Error::new_spanned(ident, "there is nothing to choose from"));
    }
    errors.finish()?;

    let describe =
        doc.map(|text| quote!(let schema = ::longshore_guest::private::described(schema, #text);));
    let schema = quote! {
        impl ::longshore_guest::Schema for #ident {
            fn schema() -> ::longshore_guest::private::Value {
                let schema = ::longshore_guest::private::json!({ "type": "string", "enum": [#(#names),*] });
                #describe
                schema
            }
        }
    };
    if to == Use::Result {
        return Ok(schema);
    }
    Ok(quote! {
        #schema
        impl ::longshore_guest::Argument for #ident {
            fn from_json(value: ::longshore_guest::private::Value) -> ::core::result::Result<Self, ::longshore_guest::argument::Mismatch> {
                match ::longshore_guest::private::choice(&value, &[#(#names),*])? {
                    #(#names => ::core::result::Result::Ok(Self::#idents),)*
                    _ => ::core::unreachable!("only what is among the choices is given back"),
                }
            }
        }
    })
}

fn name(given: Option<&LitStr>, ident: &Ident, case: Case) -> LitStr {
    given.cloned().unwrap_or_else(|| {
        let text = ident.to_string();
        LitStr::new(
            &case.apply(text.strip_prefix("r#").unwrap_or(&text)),
            ident.span(),
        )
    })
}

/// The case of the names of a type.
fn case(attributes: &[Attribute], to: Use) -> Result<Case> {
    let mut case = Case::Kept;
    for attribute in attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("tool"))
    {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("rename_all") {
                return Err(unknown(&meta, "of a type", "rename_all"));
            }
            let word: LitStr = meta.value()?.parse()?;
            case = Case::named(&word.value()).map_err(|text| Error::new_spanned(&word, text))?;
            Ok(())
        })?;
    }
    if to == Use::Result
        && let Some(word) = Serde::read(attributes)?.rename_all
    {
        case = Case::named(&word.value()).map_err(|text| Error::new_spanned(&word, text))?;
    }
    Ok(case)
}

/// What serde is told of reading only.
const READING: [&str; 5] = [
    "default",
    "alias",
    "deny_unknown_fields",
    "deserialize_with",
    "crate",
];

/// What serde is told and a schema must know.
#[derive(Default)]
struct Serde {
    rename: Option<LitStr>,
    rename_all: Option<LitStr>,
    is_skipped: bool,
}

impl Serde {
    fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut serde = Self::default();
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("serde"))
        {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") {
                    serde.rename = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("rename_all") {
                    serde.rename_all = Some(meta.value()?.parse()?);
                } else if meta.path.is_ident("skip_serializing_if") {
                    meta.value()?.parse::<LitStr>()?;
                    serde.is_skipped = true;
                } else if READING.iter().any(|word| meta.path.is_ident(word)) {
                    if meta.input.peek(syn::Token![=]) {
                        meta.value()?.parse::<syn::Expr>()?;
                    }
                } else {
                    let word = meta.path.to_token_stream().to_string();
                    let text = format!(
                        "`{word}` changes what serde writes in a way that this schema cannot follow: implement `Schema` \
                         by hand, or leave it out"
                    );
                    return Err(Error::new_spanned(&meta.path, text));
                }
                Ok(())
            })?;
        }
        Ok(serde)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(to: Use, source: &str, text: &str, at: &str) {
        let input: DeriveInput = syn::parse_str(source).unwrap();
        let error = implement(input, to).expect_err("it is refused");
        assert_eq!(error.to_string(), text, "{source}");
        assert_eq!(error.span().source_text().as_deref(), Some(at), "{source}");
    }

    #[test]
    fn errors_point_at_what_is_wrong() {
        check(
            Use::Argument,
            "struct Point(u8, u8);",
            "its values are JSON objects: give the struct fields with names",
            "Point",
        );
        check(
            Use::Argument,
            "struct Of<T> { of: T }",
            "a generic type has no one schema: write out the types of its fields",
            "<T>",
        );
        check(
            Use::Argument,
            "enum Shape { Point, Circle { radius: f64 } }",
            "a choice is one of several words, without fields: take what belongs to it as an argument of its own",
            "Circle { radius: f64 }",
        );
        check(
            Use::Argument,
            "enum Never {}",
            "there is nothing to choose from",
            "Never",
        );
        check(
            Use::Argument,
            "enum Shape { #[tool(minimum = 1)] Point }",
            "a choice has no options but `name`",
            "Point",
        );
        check(
            Use::Argument,
            "#[tool(rename_all = \"kebab\")] struct S { a: u8 }",
            r#"there is no case "kebab": "kebab-case", "snake_case", "camelCase", "PascalCase""#,
            r#""kebab""#,
        );
        check(
            Use::Argument,
            "#[tool(name = \"x\")] struct S { a: u8 }",
            "there is no option `name` of a type: there are rename_all",
            "name",
        );
    }

    #[test]
    fn a_result_is_written_by_serde_and_must_be_followed() {
        check(
            Use::Result,
            "struct S { #[serde(flatten)] a: T }",
            "`flatten` changes what serde writes in a way that this schema cannot follow: implement `Schema` by hand, \
             or leave it out",
            "flatten",
        );
        check(
            Use::Result,
            "struct S { #[tool(default)] a: u8 }",
            "a result has no defaults: all that it says is given",
            "a: u8",
        );
        let text = expand(
            quote! {
                #[serde(rename_all = "camelCase", deny_unknown_fields)]
                struct S {
                    #[serde(default)]
                    step_ms: u8,
                    #[serde(rename = "x")]
                    y: u8,
                    #[serde(skip_serializing_if = "Option::is_none")]
                    z: Option<u8>,
                }
            },
            Use::Result,
        )
        .to_string();
        for part in [
            r#"given :: < u8 > ("stepMs")"#,
            r#"given :: < u8 > ("x")"#,
            r#"given_or_left_out :: < Option < u8 > > ("z") . optional ()"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn an_empty_struct_is_an_argument_too() {
        let text = expand(
            quote!(
                struct Nothing {}
            ),
            Use::Argument,
        )
        .to_string();
        assert!(!text.contains("let mut"), "{text}");
    }
}
