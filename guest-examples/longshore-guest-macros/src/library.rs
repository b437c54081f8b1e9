//! A function becomes a resource or a prompt.

use std::sync::atomic::{AtomicBool, Ordering};

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser as _};
use syn::spanned::Spanned as _;
use syn::{Attribute, Error, FnArg, ItemFn, LitStr, Path, Result, Token, Type};

use crate::options::{tool_name, unknown};
use crate::text;
use crate::tool::{Errors, check_signature, ident_of, is_context, owned_instead, returned, unraw};

/// Which exports the crate has already: each is written once, beside the first function that needs it.
pub(crate) struct Exports<'a> {
    pub(crate) resources: &'a AtomicBool,
    pub(crate) prompts: &'a AtomicBool,
    pub(crate) completions: &'a AtomicBool,
}

impl Exports<'_> {
    fn first(flag: &AtomicBool, export: TokenStream) -> TokenStream {
        if flag.swap(true, Ordering::Relaxed) {
            TokenStream::new()
        } else {
            export
        }
    }

    fn resources(&self) -> TokenStream {
        Self::first(
            self.resources,
            quote! {
                use ::longshore_guest::private::Resources;
                ::longshore_guest::private::resource_bindings::export!(
                    Resources with_types_in ::longshore_guest::private::resource_bindings
                );
            },
        )
    }

    fn prompts(&self) -> TokenStream {
        Self::first(
            self.prompts,
            quote! {
                use ::longshore_guest::private::Prompts;
                ::longshore_guest::private::prompt_bindings::export!(
                    Prompts with_types_in ::longshore_guest::private::prompt_bindings
                );
            },
        )
    }

    fn completions(&self, inputs: &[Input]) -> TokenStream {
        if !inputs.iter().any(|input| input.complete.is_some()) {
            return TokenStream::new();
        }
        Self::first(
            self.completions,
            quote! {
                use ::longshore_guest::private::Completions;
                ::longshore_guest::private::completion_bindings::export!(
                    Completions with_types_in ::longshore_guest::private::completion_bindings
                );
            },
        )
    }
}

/// The function as it was, and beside it what makes it a resource.
pub(crate) fn resource(
    options: TokenStream,
    item: &TokenStream,
    exports: &Exports<'_>,
) -> TokenStream {
    expand(item, "resource", |function| {
        register_resource(options, function, exports)
    })
}

/// The function as it was, and beside it what makes it a prompt.
pub(crate) fn prompt(
    options: TokenStream,
    item: &TokenStream,
    exports: &Exports<'_>,
) -> TokenStream {
    expand(item, "prompt", |function| {
        register_prompt(options, function, exports)
    })
}

fn expand(
    item: &TokenStream,
    word: &str,
    register: impl FnOnce(&mut ItemFn) -> Result<TokenStream>,
) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let text = format!("`#[{word}]` makes a {word} of a function");
            let error = Error::new_spanned(item, text).to_compile_error();
            return quote!(#error #item);
        }
    };
    let registration = register(&mut function).unwrap_or_else(Error::into_compile_error);
    quote! {
        #[allow(clippy::needless_pass_by_value, reason = "it owns its arguments")]
        #function
        #registration
    }
}

/// What stands in the attribute of the function.
#[derive(Default)]
struct Options {
    /// Of a resource, and first.
    uri: Option<LitStr>,
    name: Option<LitStr>,
    title: Option<LitStr>,
    mime_type: Option<LitStr>,
}

impl Options {
    fn of_resource(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let read = |input: ParseStream<'_>| {
            if input.peek(LitStr) {
                options.uri = Some(input.parse()?);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            syn::meta::parser(|meta| options.read_one(&meta, true)).parse2(input.parse()?)
        };
        read.parse2(tokens)?;
        Ok(options)
    }

    fn of_prompt(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.read_one(&meta, false)).parse2(tokens)?;
        Ok(options)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>, is_resource: bool) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(if is_resource {
                meta.value()?.parse()?
            } else {
                tool_name(meta)?
            });
        } else if meta.path.is_ident("title") {
            self.title = Some(meta.value()?.parse()?);
        } else if is_resource && meta.path.is_ident("mime_type") {
            self.mime_type = Some(meta.value()?.parse()?);
        } else if is_resource {
            return Err(unknown(meta, "of a resource", "name, title, mime_type"));
        } else {
            return Err(unknown(meta, "of a prompt", "name, title"));
        }
        Ok(())
    }

    /// The name that was given, or that of the function.
    fn name(&self, function: &ItemFn) -> LitStr {
        let ident = &function.sig.ident;
        self.name
            .clone()
            .unwrap_or_else(|| LitStr::new(&unraw(ident).replace('_', "-"), ident.span()))
    }

    fn title(&self) -> TokenStream {
        optional(self.title.as_ref())
    }
}

fn optional(text: Option<&LitStr>) -> TokenStream {
    match text {
        Some(text) => quote!(::core::option::Option::Some(#text)),
        None => quote!(::core::option::Option::None),
    }
}

/// One argument of the function: of what the caller gives, if it has a name.
struct Input {
    name: Option<LitStr>,
    ty: Type,
    doc: Option<String>,
    complete: Option<Path>,
}

fn read_input(input: &mut FnArg, word: &str) -> Result<Input> {
    let argument = match input {
        FnArg::Receiver(receiver) => {
            return Err(Error::new_spanned(
                receiver,
                format!("a {word} is a function of its own, without `self`"),
            ));
        }
        FnArg::Typed(argument) => argument,
    };
    let doc = text::doc(&argument.attrs);
    argument
        .attrs
        .retain(|attribute| !attribute.path().is_ident("doc"));
    let (given, complete) = take_options(&mut argument.attrs, word)?;
    let ty = (*argument.ty).clone();
    if is_context(&ty) {
        return Ok(Input {
            name: None,
            ty,
            doc,
            complete: None,
        });
    }
    if let Type::Reference(reference) = &ty {
        return Err(Error::new_spanned(&ty, owned_instead(&reference.elem)));
    }
    let name = match given {
        Some(name) => name,
        None => {
            let ident = ident_of(argument)?;
            LitStr::new(&unraw(ident), ident.span())
        }
    };
    Ok(Input {
        name: Some(name),
        ty,
        doc,
        complete,
    })
}

fn take_options(
    attributes: &mut Vec<Attribute>,
    word: &str,
) -> Result<(Option<LitStr>, Option<Path>)> {
    let (mut name, mut complete) = (None, None);
    for attribute in attributes.extract_if(.., |attribute| attribute.path().is_ident(word)) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                name = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("complete") {
                complete = Some(meta.value()?.parse()?);
            } else {
                return Err(unknown(&meta, "here", "name, complete"));
            }
            Ok(())
        })?;
    }
    Ok((name, complete))
}

/// What both kinds of function have to be, and what is read of them.
struct Read {
    description: String,
    inputs: Vec<Input>,
}

fn read_function(function: &mut ItemFn, word: &str) -> Result<Read> {
    let mut errors = Errors::default();
    errors.keep(check_signature(function, &format!("a {word}")));
    let inputs: Vec<Input> = function
        .sig
        .inputs
        .iter_mut()
        .filter_map(|input| errors.keep(read_input(input, word)))
        .collect();
    let description = text::doc(&function.attrs);
    if description.is_none() {
        let text = format!("a {word} needs a doc comment: it is the description that people see");
        errors.add(Error::new_spanned(&function.sig.ident, text));
    }
    errors.finish()?;
    Ok(Read {
        description: description.unwrap_or_default(),
        inputs,
    })
}

fn completers(inputs: &[Input]) -> TokenStream {
    let rows = inputs.iter().filter_map(|input| {
        let (name, complete) = (input.name.as_ref()?, input.complete.as_ref()?);
        // Called at its own place in the source, so that a type which does not fit is shown there.
        let completed = quote_spanned! {complete.span()=>
            ::longshore_guest::private::IntoCompletion::into_completion(#complete(typed))
        };
        Some(quote!((#name, (|typed: &str| #completed) as ::longshore_guest::private::Completer)))
    });
    quote!(&[#(#rows),*])
}

fn register_resource(
    options: TokenStream,
    function: &mut ItemFn,
    exports: &Exports<'_>,
) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let options = errors.keep(Options::of_resource(options));
    let read = errors.keep(read_function(function, "resource"));
    errors.finish()?;
    let (
        Some(options),
        Some(Read {
            description,
            inputs,
        }),
    ) = (options, read)
    else {
        return Ok(TokenStream::new());
    };
    let Some(uri) = &options.uri else {
        return Err(Error::new_spanned(
            &function.sig.ident,
            "a resource needs a URI, which stands first: `#[resource(\"notes://today\")]`",
        ));
    };
    check_variables(uri, &inputs)?;
    let (name, title) = (options.name(function), options.title());
    let mime_type = optional(options.mime_type.as_ref());
    let completers = completers(&inputs);
    let variables: Vec<LitStr> = variables(&uri.value())
        .map_err(|text| Error::new_spanned(uri, text))?
        .iter()
        .map(|name| LitStr::new(name, uri.span()))
        .collect();
    let values = inputs.iter().map(|input| match &input.name {
        None => quote!(&::longshore_guest::Context::default()),
        Some(name) => {
            let at = variables
                .iter()
                .position(|variable| variable.value() == name.value());
            let at = at.unwrap_or_default();
            let ty = &input.ty;
            quote_spanned!(ty.span()=> variables[#at].1.clone())
        }
    });
    let ident = &function.sig.ident;
    let ty = returned(&function.sig.output);
    let into_read =
        quote_spanned!(ty.span()=> <#ty as ::longshore_guest::private::IntoRead>::into_read);
    let bound = if variables.is_empty() {
        quote!(_)
    } else {
        quote!(variables)
    };
    let (export, completions) = (exports.resources(), exports.completions(&inputs));
    Ok(quote! {
        const _: () = {
            const MIME_TYPE: ::core::option::Option<&str> = #mime_type;
            fn __longshore_read(uri: &str, #bound: &[(&'static str, ::std::string::String)]) -> ::longshore_guest::private::Read {
                #into_read(#ident(#(#values),*), uri, MIME_TYPE)
            }
            #export
            #completions
            ::longshore_guest::private::inventory::submit! {
                ::longshore_guest::private::ResourceEntry {
                    uri: #uri,
                    name: #name,
                    title: #title,
                    mime_type: MIME_TYPE,
                    description: #description,
                    completers: #completers,
                    read: __longshore_read,
                }
            }
        };
    })
}

/// Each variable is an argument, and each argument a variable.
fn check_variables(uri: &LitStr, inputs: &[Input]) -> Result<()> {
    let variables = variables(&uri.value()).map_err(|text| Error::new_spanned(uri, text))?;
    let mut errors = Errors::default();
    for input in inputs {
        let Some(name) = &input.name else { continue };
        if !variables.contains(&name.value()) {
            let text = format!("the URI has no variable {{{}}}", name.value());
            errors.add(Error::new(name.span(), text));
        }
    }
    for variable in &variables {
        let is_taken = |input: &Input| {
            input
                .name
                .as_ref()
                .is_some_and(|name| name.value() == *variable)
        };
        if !inputs.iter().any(is_taken) {
            let text = format!("no argument takes the variable {{{variable}}}");
            errors.add(Error::new_spanned(uri, text));
        }
    }
    errors.finish()
}

/// The variables of a template, as far as a function can take them.
fn variables(uri: &str) -> std::result::Result<Vec<String>, String> {
    let mut variables = Vec::new();
    let mut rest = uri;
    let mut is_behind_variable = false;
    while let Some((literal, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else {
            return Err("has a { without its }".to_owned());
        };
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(format!(
                "{{{name}}} is no plain variable, such as {{day}}: for other expressions of RFC 6570 export \
                 `longshore:tool/resources` yourself"
            ));
        }
        if literal.is_empty() && is_behind_variable {
            return Err("two variables stand side by side: put something between them".to_owned());
        }
        if variables.iter().any(|known| known == name) {
            return Err(format!("the variable {{{name}}} stands twice"));
        }
        variables.push(name.to_owned());
        is_behind_variable = true;
        rest = behind;
    }
    Ok(variables)
}

fn register_prompt(
    options: TokenStream,
    function: &mut ItemFn,
    exports: &Exports<'_>,
) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let options = errors.keep(Options::of_prompt(options));
    let read = errors.keep(read_function(function, "prompt"));
    errors.finish()?;
    let (
        Some(options),
        Some(Read {
            description,
            inputs,
        }),
    ) = (options, read)
    else {
        return Ok(TokenStream::new());
    };
    let (name, title) = (options.name(function), options.title());
    let arguments = inputs.iter().filter_map(|input| {
        let (name, ty) = (input.name.as_ref()?, &input.ty);
        let doc = input.doc.as_ref().map(|text| LitStr::new(text, name.span()));
        let doc = optional(doc.as_ref());
        let required =
            quote_spanned!(ty.span()=> <#ty as ::longshore_guest::private::PromptArgument>::REQUIRED);
        Some(quote! {
            ::longshore_guest::private::ArgumentEntry { name: #name, description: #doc, required: #required }
        })
    });
    let values = inputs.iter().map(|input| match &input.name {
        None => quote!(&::longshore_guest::Context::default()),
        Some(name) => {
            let ty = &input.ty;
            quote_spanned!(ty.span()=> given.take::<#ty>(#name)?)
        }
    });
    let bound = if inputs.iter().all(|input| input.name.is_none()) {
        quote!(_)
    } else {
        quote!(given)
    };
    let ident = &function.sig.ident;
    let ty = returned(&function.sig.output);
    let into_prompt =
        quote_spanned!(ty.span()=> <#ty as ::longshore_guest::private::IntoPrompt>::into_prompt);
    let completers = completers(&inputs);
    let (export, completions) = (exports.prompts(), exports.completions(&inputs));
    Ok(quote! {
        const _: () = {
            fn __longshore_get(#bound: &mut ::longshore_guest::private::Given) -> ::longshore_guest::private::Prompted {
                #into_prompt(#ident(#(#values),*))
            }
            #export
            #completions
            ::longshore_guest::private::inventory::submit! {
                ::longshore_guest::private::PromptEntry {
                    name: #name,
                    title: #title,
                    description: #description,
                    arguments: &[#(#arguments),*],
                    completers: #completers,
                    get: __longshore_get,
                }
            }
        };
    })
}

#[cfg(test)]
mod tests {
    use quote::ToTokens as _;

    use super::*;

    fn exports(flags: &[AtomicBool; 3]) -> Exports<'_> {
        Exports {
            resources: &flags[0],
            prompts: &flags[1],
            completions: &flags[2],
        }
    }

    fn expanded(
        expand: impl FnOnce(TokenStream, &TokenStream, &Exports<'_>) -> TokenStream,
        options: &str,
        source: &str,
        flags: &[AtomicBool; 3],
    ) -> String {
        let (options, item) = (options.parse().unwrap(), source.parse().unwrap());
        expand(options, &item, &exports(flags)).to_string()
    }

    #[track_caller]
    fn refused(result: Result<TokenStream>, text: &str) {
        let error = result.expect_err(text);
        let texts: Vec<String> = error.into_iter().map(|error| error.to_string()).collect();
        assert!(
            texts.iter().any(|there| there.contains(text)),
            "{text:?} is not in {texts:?}"
        );
    }

    #[test]
    fn a_function_becomes_an_entry_and_the_first_writes_the_export() {
        let flags = Default::default();
        let source = "/// Notes.\nfn of_day(day: String, ctx: &Context) -> String { day }";
        let first = expanded(resource, r#""notes://{day}", title = "N""#, source, &flags);
        for part in [
            r#"uri : "notes://{day}""#,
            r#"name : "of-day""#,
            r#"description : "Notes.""#,
            "resource_bindings :: export !",
        ] {
            assert!(first.contains(part), "{part} is not in {first}");
        }
        assert!(!first.contains("completion_bindings"), "{first}");
        let second = expanded(
            resource,
            r#""notes://all""#,
            "/// Notes.\nfn all() -> &'static str { \"\" }",
            &flags,
        );
        assert!(!second.contains("export !"), "{second}");
        let source = "/// Asks.\nfn ask(/** What. */ #[prompt(complete = f)] what: Option<String>) -> String { String::new() }";
        let third = expanded(prompt, "", source, &flags);
        for part in [
            r#"name : "what" , description : :: core :: option :: Option :: Some ("What.")"#,
            "prompt_bindings :: export !",
            "completion_bindings :: export !",
        ] {
            assert!(third.contains(part), "{part} is not in {third}");
        }
    }

    #[test]
    fn what_cannot_be_a_resource_is_refused_with_the_remedy() {
        let flags = Default::default();
        let check = |options: &str, source: &str, text: &str| {
            let mut function: ItemFn = syn::parse_str(source).unwrap();
            let options = options.parse().unwrap();
            refused(
                register_resource(options, &mut function, &exports(&flags)),
                text,
            );
        };
        let plain = "/// Notes.\nfn f() -> String { String::new() }";
        let day = "/// Notes.\nfn f(day: String) -> String { day }";
        check("", plain, "a resource needs a URI");
        check(
            r#""t:{day}""#,
            plain,
            "no argument takes the variable {day}",
        );
        check(r#""t:a""#, day, "the URI has no variable {day}");
        check(r#""t:{+day}""#, day, "no plain variable");
        check(r#""t:{day}{x}""#, day, "side by side");
        check(r#""t:{day}/{day}""#, day, "stands twice");
        check(r#""t:{day""#, day, "without its }");
        check(r#""t:a", colour = 1"#, plain, "no option `colour`");
        check(
            r#""t:a""#,
            "fn f() -> String { String::new() }",
            "needs a doc comment",
        );
        check(
            r#""t:{day}""#,
            "/// N.\nfn f(day: &str) -> String { day.into() }",
            "an argument is owned",
        );
        check(
            r#""t:a""#,
            "/// N.\nasync fn f() -> String { String::new() }",
            "a resource is an ordinary function",
        );
    }

    #[test]
    fn what_cannot_be_a_prompt_is_refused_with_the_remedy() {
        let flags = Default::default();
        let check = |options: &str, source: &str, text: &str| {
            let mut function: ItemFn = syn::parse_str(source).unwrap();
            let options = options.parse().unwrap();
            refused(
                register_prompt(options, &mut function, &exports(&flags)),
                text,
            );
        };
        let plain = "/// Asks.\nfn f() -> String { String::new() }";
        check(
            "mime_type = \"a/b\"",
            plain,
            "no option `mime_type` of a prompt",
        );
        check("name = \"two words\"", plain, "1 to 64");
        check(
            "",
            "fn f() -> String { String::new() }",
            "needs a doc comment",
        );
        check(
            "",
            "/// A.\nfn f(#[prompt(colour = 1)] a: String) -> String { a }",
            "no option `colour`",
        );
        check(
            "",
            "/// A.\nfn f(self) -> String { String::new() }",
            "without `self`",
        );
    }

    #[test]
    fn tokens_of_a_path_are_kept() {
        let mut attributes: Vec<Attribute> = syn::parse_quote!(#[prompt(complete = a::b)]);
        let (_, complete) = take_options(&mut attributes, "prompt").unwrap();
        assert_eq!(complete.unwrap().to_token_stream().to_string(), "a :: b");
        assert!(attributes.is_empty());
    }
}
