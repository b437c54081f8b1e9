//! Doc comments and names.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment among these attributes as one text: the lines of a paragraph joined, since they were only wrapped
/// for the source; paragraphs and the items of a list kept apart.
pub(crate) fn doc(attributes: &[Attribute]) -> Option<String> {
    let mut text = String::new();
    let mut is_paragraph_over = false;
    for line in attributes.iter().filter_map(doc_lines).flatten() {
        let line = line.trim();
        if line.is_empty() {
            is_paragraph_over = !text.is_empty();
            continue;
        }
        if is_paragraph_over {
            text.push_str("\n\n");
        } else if line.starts_with("- ") || line.starts_with("* ") {
            text.push('\n');
        } else if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(line);
        is_paragraph_over = false;
    }
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn doc_lines(attribute: &Attribute) -> Option<Vec<String>> {
    let Meta::NameValue(pair) = &attribute.meta else {
        return None;
    };
    match &pair.value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) if pair.path.is_ident("doc") => {
            Some(text.value().split('\n').map(without_star).collect())
        }
        _ => None,
    }
}

/// A `/** */` comment over several lines has a star before each.
fn without_star(line: &str) -> String {
    let bare = line.trim_start();
    bare.strip_prefix("* ")
        .filter(|_| line.len() != bare.len() && bare.len() > 2)
        .unwrap_or(bare)
        .to_owned()
}

/// How words are put together to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// As it stands in the source.
    Kept,
    /// kebab-case
    Kebab,
    /// snake_case
    Snake,
    /// camelCase
    Camel,
    /// PascalCase
    Pascal,
}

impl Case {
    const ALL: [(&'static str, Self); 4] = [
        ("kebab-case", Self::Kebab),
        ("snake_case", Self::Snake),
        ("camelCase", Self::Camel),
        ("PascalCase", Self::Pascal),
    ];

    /// The case of that name.
    ///
    /// # Errors
    /// If there is none, what there is.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, case)| *case).ok_or_else(|| {
            let known: Vec<String> = Self::ALL
                .iter()
                .map(|(name, _)| format!("{name:?}"))
                .collect();
            format!("there is no case {name:?}: {}", known.join(", "))
        })
    }

    /// The name of the source in this case.
    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        match self {
            Self::Kept => name.to_owned(),
            Self::Kebab => words.join("-"),
            Self::Snake => words.join("_"),
            Self::Camel => match words.split_first() {
                Some((first, rest)) => first.chars().chain(capitalised(rest)).collect(),
                None => String::new(),
            },
            Self::Pascal => capitalised(&words).collect(),
        }
    }
}

fn capitalised(words: &[String]) -> impl Iterator<Item = char> {
    words.iter().flat_map(|word| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters)
    })
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut is_first = true;
        for letter in part.chars() {
            if letter.is_uppercase() || is_first {
                words.push(String::new());
            }
            is_first = false;
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn wrapped_lines_are_joined_and_paragraphs_are_not() {
        let item: syn::ItemFn = parse_quote! {
            /// Greets somebody
            /// by name.
            ///
            /// Kinds:
            /// - short
            /// - long
            fn hello() {}
        };
        assert_eq!(
            doc(&item.attrs).as_deref(),
            Some("Greets somebody by name.\n\nKinds:\n- short\n- long")
        );
    }

    #[test]
    fn a_block_comment_loses_its_stars() {
        let item: syn::ItemFn =
            syn::parse_str("/** Greets\n * somebody.\n */ fn hello() {}").unwrap();
        assert_eq!(doc(&item.attrs).as_deref(), Some("Greets somebody."));
    }

    #[test]
    fn an_empty_comment_is_none() {
        let item: syn::ItemFn = parse_quote! {
            ///
            #[inline]
            fn hello() {}
        };
        assert_eq!(doc(&item.attrs), None);
    }

    #[test]
    fn names_in_every_case() {
        for (case, field, variant) in [
            ("kebab-case", "step-ms", "nested-step"),
            ("snake_case", "step_ms", "nested_step"),
            ("camelCase", "stepMs", "nestedStep"),
            ("PascalCase", "StepMs", "NestedStep"),
        ] {
            let case = Case::named(case).unwrap();
            assert_eq!(
                (case.apply("step_ms"), case.apply("NestedStep")),
                (field.to_owned(), variant.to_owned())
            );
        }
        assert_eq!(Case::Kept.apply("NestedStep"), "NestedStep");
        assert_eq!(
            Case::named("Kebab").unwrap_err(),
            r#"there is no case "Kebab": "kebab-case", "snake_case", "camelCase", "PascalCase""#
        );
    }
}
