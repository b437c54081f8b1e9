//! A function becomes a tool.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, FnArg, Ident, ItemFn, LitStr, Pat, PatType, Path, Result, ReturnType, Type};

use crate::options::{Absent, MemberOptions, ToolOptions};
use crate::text;

/// The function as it was, and beside it what makes it a tool. With an error the function stays, so that nothing
/// else is reported as missing.
///
/// `is_first_restart` says whether a restart point was named before in the same crate, and notes that one is now: a
/// component exports the way back in once.
pub(crate) fn expand(
    options: TokenStream,
    item: &TokenStream,
    is_first_restart: impl FnOnce() -> bool,
) -> TokenStream {
    let mut function: ItemFn = match syn::parse2(item.clone()) {
        Ok(function) => function,
        Err(_) => {
            let error =
                Error::new_spanned(item, "`#[tool]` makes a tool of a function").to_compile_error();
            return quote!(#error #item);
        }
    };
    let registration = register(options, &mut function, is_first_restart)
        .unwrap_or_else(Error::into_compile_error);
    quote! {
        #[allow(clippy::needless_pass_by_value, reason = "a tool owns its arguments")]
        #function
        #registration
    }
}

/// One argument of the function.
enum Input {
    /// The context of the call.
    Context,
    /// A value that the caller gives.
    Given(Box<Given>),
}

struct Given {
    name: LitStr,
    ty: Type,
    options: MemberOptions,
    doc: Option<String>,
}

fn register(
    options: TokenStream,
    function: &mut ItemFn,
    is_first_restart: impl FnOnce() -> bool,
) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let options = errors.keep(ToolOptions::read(options)).unwrap_or_default();
    errors.keep(check_signature(function, "a tool"));
    let inputs: Vec<Input> = function
        .sig
        .inputs
        .iter_mut()
        .filter_map(|input| errors.keep(read_input(input)))
        .collect();
    let description = text::doc(&function.attrs);
    if description.is_none() {
        let text = "a tool needs a doc comment: it is the description that models choose it by";
        errors.add(Error::new_spanned(&function.sig.ident, text));
    }
    errors.finish()?;

    let ident = &function.sig.ident;
    let name = options
        .name
        .clone()
        .unwrap_or_else(|| LitStr::new(&unraw(ident).replace('_', "-"), ident.span()));
    if name.value().len() > 64 {
        return Err(Error::new_spanned(
            &name,
            "the name has more than 64 letters: give a shorter one with `#[tool(name = \"...\")]`",
        ));
    }
    let describe = describe(
        &options,
        &description.unwrap_or_default(),
        &inputs,
        &function.sig.output,
    );
    let call = call(&options, ident, &name, &inputs, &function.sig.output);
    let (resume, resumed_by) = match &options.restart {
        Some(path) => (
            resume(&options, path, &name, &inputs, &function.sig.output),
            quote!(::core::option::Option::Some(__longshore_resume)),
        ),
        None => (TokenStream::new(), quote!(::core::option::Option::None)),
    };
    let export = (options.restart.is_some() && is_first_restart()).then(|| {
        quote! {
            use ::longshore_guest::private::Restart;
            ::longshore_guest::private::restart_bindings::export!(
                Restart with_types_in ::longshore_guest::private::restart_bindings
            );
        }
    });
    Ok(quote! {
        // The names within are none that an author's function has, which they would hide.
        const _: () = {
            #describe
            #call
            #resume
            #export
            ::longshore_guest::private::inventory::submit! {
                ::longshore_guest::private::Entry {
                    name: #name,
                    describe: __longshore_describe,
                    call: __longshore_call,
                    resume: #resumed_by,
                }
            }
        };
    })
}

/// Checks what becomes `what`, such as "a tool".
pub(crate) fn check_signature(function: &ItemFn, what: &str) -> Result<()> {
    let signature = &function.sig;
    let mut errors = Errors::default();
    if let Some(word) = &signature.asyncness {
        errors.add(Error::new_spanned(
            word,
            format!(
                "{what} is an ordinary function, which returns when it is done: leave out `async`"
            ),
        ));
    }
    if let Some(word) = &signature.unsafety {
        errors.add(Error::new_spanned(
            word,
            format!("{what} cannot be `unsafe`: whoever calls it promises nothing"),
        ));
    }
    if !signature.generics.params.is_empty() {
        errors.add(Error::new_spanned(
            &signature.generics,
            format!("{what} cannot be generic: its arguments have one schema"),
        ));
    }
    if let ReturnType::Type(_, ty) = &signature.output
        && let Type::ImplTrait(_) = &**ty
    {
        errors.add(Error::new_spanned(
            ty,
            format!(
                "name the type that {what} returns, such as `String` or `Result<String, String>`"
            ),
        ));
    }
    errors.finish()
}

fn read_input(input: &mut FnArg) -> Result<Input> {
    let argument = match input {
        FnArg::Receiver(receiver) => {
            return Err(Error::new_spanned(
                receiver,
                "a tool is a function of its own, without `self`",
            ));
        }
        FnArg::Typed(argument) => argument,
    };
    let doc = text::doc(&argument.attrs);
    argument
        .attrs
        .retain(|attribute| !attribute.path().is_ident("doc"));
    let options = MemberOptions::take(&mut argument.attrs)?;
    if is_context(&argument.ty) {
        if options.name.is_some() || !options.is_bare() {
            let text = "the context comes from the host, not from the caller: it has no options";
            return Err(Error::new_spanned(&argument.pat, text));
        }
        return Ok(Input::Context);
    }
    if let Type::Reference(reference) = &*argument.ty {
        return Err(Error::new_spanned(
            &argument.ty,
            owned_instead(&reference.elem),
        ));
    }
    let name = match &options.name {
        Some(name) => name.clone(),
        None => {
            let ident = ident_of(argument)?;
            LitStr::new(&unraw(ident), ident.span())
        }
    };
    Ok(Input::Given(Box::new(Given {
        name,
        ty: (*argument.ty).clone(),
        options,
        doc,
    })))
}

pub(crate) fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    matches!(&*reference.elem, Type::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "Context"))
}

pub(crate) fn owned_instead(borrowed: &Type) -> String {
    let owned = match borrowed {
        Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
        Type::Slice(slice) => format!("Vec<{}>", slice.elem.to_token_stream()),
        other => other.to_token_stream().to_string(),
    };
    format!("an argument is owned: take `{owned}`; only `&Context` is borrowed")
}

pub(crate) fn ident_of(argument: &PatType) -> Result<&Ident> {
    match &*argument.pat {
        Pat::Ident(pattern) if pattern.subpat.is_none() => Ok(&pattern.ident),
        other => Err(Error::new_spanned(
            other,
            "an argument needs a name that callers can use: write a plain name here, or add `#[tool(name = \"...\")]`",
        )),
    }
}

pub(crate) fn unraw(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").unwrap_or(&text).to_owned()
}

fn describe(
    options: &ToolOptions,
    description: &str,
    inputs: &[Input],
    output: &ReturnType,
) -> TokenStream {
    let members = inputs.iter().filter_map(|input| match input {
        Input::Context => None,
        Input::Given(given) => {
            let Given { name, ty, options, doc } = &**given;
            let additions = options.additions(doc.as_deref());
            Some(quote_spanned!(ty.span()=> ::longshore_guest::private::Member::taken::<#ty>(#name) #additions))
        }
    });
    let title = options
        .title
        .as_ref()
        .map(|title| quote!(title: ::core::option::Option::Some(#title),));
    let task_mode = options
        .task_mode
        .as_ref()
        .map(|mode| quote!(task_mode: ::longshore_guest::TaskMode::#mode,));
    let requires = (!options.requires.is_empty()).then(|| {
        let words = &options.requires;
        quote!(requires: ::std::vec![#(::longshore_guest::Requirement::#words),*],)
    });
    let output = options.is_output.then(|| {
        let ty = returned(output);
        quote_spanned!(ty.span()=> output: ::core::option::Option::Some(<#ty as ::longshore_guest::result::IntoData>::schema()),)
    });
    let extra = extra(options);
    quote! {
        fn __longshore_describe() -> ::longshore_guest::Description {
            ::longshore_guest::Description {
                description: #description,
                input: ::longshore_guest::private::object(::std::vec![#(#members),*]),
                #title #task_mode #requires #output #extra
                ..::core::default::Default::default()
            }
        }
    }
}

fn extra(options: &ToolOptions) -> Option<TokenStream> {
    let annotations = (!options.hints.is_empty()).then(|| {
        let hints = options
            .hints
            .iter()
            .map(|(key, is_so)| quote!(#key: #is_so));
        quote!("annotations": { #(#hints),* },)
    });
    let deadline = options
        .deadline_ms
        .as_ref()
        .map(|ms| quote!("longshore/deadlineMs": #ms,));
    (annotations.is_some() || deadline.is_some()).then(
        || quote!(extra: ::core::option::Option::Some(::longshore_guest::private::json!({ #annotations #deadline })),),
    )
}

fn call(
    options: &ToolOptions,
    ident: &Ident,
    name: &LitStr,
    inputs: &[Input],
    output: &ReturnType,
) -> TokenStream {
    let (members, values) = taken(inputs);
    let end = end(options, output);
    quote! {
        fn __longshore_call(arguments: &str) -> ::longshore_guest::Outcome {
            ::longshore_guest::private::run(#name, arguments, |#members| {
                ::core::result::Result::Ok(#end(#ident(#(#values),*)))
            })
        }
    }
}

/// The way back in, by the function that takes the saved state before all that the tool takes.
fn resume(
    options: &ToolOptions,
    path: &Path,
    name: &LitStr,
    inputs: &[Input],
    output: &ReturnType,
) -> TokenStream {
    let (members, values) = taken(inputs);
    let end = end(options, output);
    // The function is called at its own place in the source, so that arguments which it does not take are shown there.
    let resumed = quote_spanned!(path.span()=> #path(state, #(#values),*));
    quote! {
        fn __longshore_resume(arguments: &str, state: &[u8]) -> ::longshore_guest::Outcome {
            ::longshore_guest::private::resume(#name, arguments, state, |state, #members| {
                ::core::result::Result::Ok(#end(#resumed))
            })
        }
    }
}

/// What binds the members of the arguments, and the values of the inputs in their order.
fn taken(inputs: &[Input]) -> (TokenStream, Vec<TokenStream>) {
    let members = format_ident!("members");
    let values = inputs
        .iter()
        .map(|input| match input {
            Input::Context => quote!(&::longshore_guest::Context::default()),
            Input::Given(given) => take(&members, &given.name, &given.ty, &given.options),
        })
        .collect();
    let bound = if inputs.iter().all(|input| matches!(input, Input::Context)) {
        quote!(_)
    } else {
        members.to_token_stream()
    };
    (bound, values)
}

/// What makes the end of a call of that which the function returns.
fn end(options: &ToolOptions, output: &ReturnType) -> TokenStream {
    let ty = returned(output);
    if options.is_output {
        quote_spanned!(ty.span()=> <#ty as ::longshore_guest::result::IntoData>::into_data)
    } else {
        quote_spanned!(ty.span()=> <#ty as ::longshore_guest::result::IntoOutcome>::into_outcome)
    }
}

/// Takes one member out of `members`.
pub(crate) fn take(
    members: &Ident,
    name: &LitStr,
    ty: &Type,
    options: &MemberOptions,
) -> TokenStream {
    match &options.default {
        None => quote_spanned!(ty.span()=> #members.take::<#ty>(#name)?),
        Some(Absent::OfType) => {
            quote_spanned!(ty.span()=> #members.take_or::<#ty>(#name, ::core::default::Default::default)?)
        }
        Some(Absent::Value(value)) => {
            let value = match &**value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => quote_spanned!(text.span()=> ::core::convert::From::from(#text)),
                other => other.to_token_stream(),
            };
            quote_spanned!(ty.span()=> #members.take_or::<#ty>(#name, || #value)?)
        }
    }
}

pub(crate) fn returned(output: &ReturnType) -> TokenStream {
    match output {
        ReturnType::Default => quote!(()),
        ReturnType::Type(_, ty) => ty.to_token_stream(),
    }
}

/// Errors, all of which are shown at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;

    /// The errors of a source, each with the piece of it that it points at.
    fn errors(options: &str, source: &str) -> Vec<(String, String)> {
        let mut function: ItemFn = syn::parse_str(source).unwrap();
        match register(options.parse().unwrap(), &mut function, || true) {
            Ok(_) => Vec::new(),
            Err(error) => error
                .into_iter()
                .map(|error| {
                    let source = error.span().source_text().unwrap_or_default();
                    (error.to_string(), source)
                })
                .collect(),
        }
    }

    #[track_caller]
    fn check(options: &str, source: &str, text: &str, at: &str) {
        assert_eq!(
            errors(options, source),
            [(text.to_owned(), at.to_owned())],
            "{options} {source}"
        );
    }

    #[test]
    fn a_function_stays_as_it_was_and_becomes_an_entry() {
        let expanded = expand(
            TokenStream::new(),
            &quote! {
                /// Greets.
                fn say_hello(/** Who. */ #[tool(min_length = 1)] name: String, ctx: &Context) -> String { name }
            },
            || true,
        );
        let file: syn::File = syn::parse2(expanded).unwrap();
        let [syn::Item::Fn(function), syn::Item::Const(_)] = &*file.items else {
            panic!("a function and what registers it")
        };
        let inputs = function.sig.inputs.to_token_stream().to_string();
        assert_eq!(inputs, "name : String , ctx : & Context");
        let text = file.items[1].to_token_stream().to_string();
        for part in [
            r#"name : "say-hello""#,
            r#"description : "Greets.""#,
            r#". with ("minLength" , 1) . with ("description" , "Who.")"#,
            r#"say_hello (members . take :: < String > ("name") ? , & :: longshore_guest :: Context :: default ())"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn options_reach_the_description() {
        let options = quote!(
            name = "x",
            title = "X",
            task_mode = "on-detach",
            requires("tasks", "sampling.tools"),
            output,
            deadline_ms = 5,
            read_only,
            open_world = false
        );
        let text = expand(
            options,
            &quote!(
                #[doc = "X."]
                fn f() -> Data {
                    Data
                }
            ),
            || true,
        )
        .to_string();
        for part in [
            r#"title : :: core :: option :: Option :: Some ("X")"#,
            "task_mode : :: longshore_guest :: TaskMode :: OnDetach",
            ":: longshore_guest :: Requirement :: Tasks , :: longshore_guest :: Requirement :: SamplingTools",
            "< Data as :: longshore_guest :: result :: IntoData > :: schema ()",
            r#"{ "annotations" : { "readOnlyHint" : true , "openWorldHint" : false } , "longshore/deadlineMs" : 5 , }"#,
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn a_restart_point_takes_the_state_before_the_rest() {
        let expanded = |is_first| {
            let item = quote! {
                /// X.
                fn f(ctx: &Context, n: u8) {}
            };
            expand(quote!(restart = go::on), &item, || is_first).to_string()
        };
        let text = expanded(true);
        for part in [
            r#"resume ("f" , arguments , state , | state , members |"#,
            r#"go :: on (state , & :: longshore_guest :: Context :: default () , members . take :: < u8 > ("n") ?)"#,
            "resume : :: core :: option :: Option :: Some (__longshore_resume)",
            "restart_bindings :: export !",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!expanded(false).contains("restart_bindings :: export !"));
    }

    #[test]
    fn what_is_no_function_says_so_and_stays() {
        let text = expand(
            TokenStream::new(),
            &quote!(
                struct Hello;
            ),
            || true,
        )
        .to_string();
        assert!(
            text.contains("`#[tool]` makes a tool of a function"),
            "{text}"
        );
        assert!(text.ends_with("struct Hello ;"), "{text}");
    }

    #[test]
    fn errors_point_at_what_is_wrong() {
        check(
            "",
            "fn hello() {}",
            "a tool needs a doc comment: it is the description that models choose it by",
            "hello",
        );
        check(
            "",
            "/// x\nasync fn f() {}",
            "a tool is an ordinary function, which returns when it is done: leave out `async`",
            "async",
        );
        check(
            "",
            "/// x\nfn f<T>(a: T) {}",
            "a tool cannot be generic: its arguments have one schema",
            "<T>",
        );
        check(
            "",
            "/// x\nfn f(name: &str) {}",
            "an argument is owned: take `String`; only `&Context` is borrowed",
            "&str",
        );
        check(
            "",
            "/// x\nfn f(names: &[u8]) {}",
            "an argument is owned: take `Vec<u8>`; only `&Context` is borrowed",
            "&[u8]",
        );
        check(
            "",
            "/// x\nfn f(&self) {}",
            "a tool is a function of its own, without `self`",
            "&self",
        );
        check(
            "",
            "/// x\nfn f((a, b): (u8, u8)) {}",
            "an argument needs a name that callers can use: write a plain name here, or add `#[tool(name = \"...\")]`",
            "(a, b)",
        );
        check(
            "",
            "/// x\nfn f(#[tool(default)] ctx: &Context) {}",
            "the context comes from the host, not from the caller: it has no options",
            "ctx",
        );
        check(
            "",
            "/// x\nfn f() -> impl Display { 1 }",
            "name the type that a tool returns, such as `String` or `Result<String, String>`",
            "impl Display",
        );
        check(
            "",
            "/// x\nfn f(#[tool(min = 1)] a: u8) {}",
            "there is no option `min` here: there are name, default, title, minimum, maximum, min_length, max_length, \
             min_items, max_items, pattern, format, header",
            "min",
        );
    }

    #[test]
    fn errors_of_options_point_at_the_word() {
        let source = "/// x\nfn f() {}";
        check(
            "mode = \"auto\"",
            source,
            "there is no option `mode` of a tool: there are name, title, task_mode, requires, output, deadline_ms, \
             read_only, idempotent, destructive, open_world, restart",
            "mode",
        );
        check(
            "task_mode = \"sometimes\"",
            source,
            r#"there is no task mode "sometimes": "never", "on-detach", "auto", "always""#,
            r#""sometimes""#,
        );
        check(
            "requires(\"tasks\", \"money\")",
            source,
            "there is no requirement \"money\": \"tasks\", \"elicitation\", \"elicitation.form\", \"elicitation.url\", \
             \"sampling\", \"sampling.tools\", \"roots\"",
            r#""money""#,
        );
        check(
            "name = \"two words\"",
            source,
            "a tool's name is 1 to 64 of `A-Za-z0-9_.-`",
            r#""two words""#,
        );
        check("title = 1", source, "expected string literal", "1");
    }

    #[test]
    fn all_errors_are_shown_at_once() {
        let errors = errors("colour = 1", "async fn f(a: &str, b: &str) {}");
        let places: Vec<&str> = errors.iter().map(|(_, at)| &**at).collect();
        assert_eq!(places, ["colour", "async", "&str", "&str", "f"]);
    }
}
