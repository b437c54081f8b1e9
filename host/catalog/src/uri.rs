//! URIs of resources (RFC 3986), and templates of them (RFC 6570).
//!
//! A template is read here to decide which component a URI belongs to, and no more: what its variables stand for is
//! the component's to find out. So any text that the template can become fits it, whatever it would be expanded with,
//! and that takes no more than one pass over the text for each part of the template.

use crate::json::cut;

/// The longest URI or template in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// The most expressions in one template: each is one pass over every URI that is looked up.
pub const MAX_EXPRESSIONS: usize = 16;

/// Checks that a text is an absolute URI. The error can follow the name of what was read.
pub fn check(uri: &str) -> Result<(), String> {
    at_most(uri)?;
    if let Some(odd) = uri.chars().find(|c| !is_uri_char(*c)) {
        return Err(format!(
            "holds {odd:?}, which stands in no URI; percent-encode it"
        ));
    }
    encodings(uri)?;
    if scheme(uri).is_none() {
        return Err("does not begin with a scheme; write it whole, such as `notes://today`".into());
    }
    Ok(())
}

fn at_most(text: &str) -> Result<(), String> {
    if text.len() > MAX_URI {
        let len = text.len();
        return Err(format!("has {len} bytes; make it at most {MAX_URI}"));
    }
    Ok(())
}

fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~".contains(c)
}

fn is_uri_char(c: char) -> bool {
    is_unreserved(c) || ":/?#[]@!$&'()*+,;=%".contains(c)
}

/// Checks that behind each `%` stand two hexadecimal digits.
fn encodings(text: &str) -> Result<(), String> {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    match text
        .match_indices('%')
        .find(|(at, _)| !(is_hex(at + 1) && is_hex(at + 2)))
    {
        Some(_) => Err("has a % without two hexadecimal digits behind it; write %25".into()),
        None => Ok(()),
    }
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme.then_some(scheme)
}

/// Whether one segment of its path leads upwards or nowhere. A reader that joins it to a directory would leave that.
pub(crate) fn has_dots(uri: &str) -> bool {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    path.split('/').skip(1).any(|segment| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        matches!(plain.as_str(), "." | "..")
    })
}

/// A template that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    parts: Vec<Part>,
    variables: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Expression(Operator),
}

/// What an expression may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Simple,
    Reserved,
    /// One that begins with its own character, and may become nothing.
    Led(char),
}

impl Operator {
    /// The character that it begins with, if any.
    fn lead(self) -> Option<char> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Led(lead) => Some(lead),
        }
    }

    /// What may stand in what it becomes.
    fn takes(self, c: char) -> bool {
        let more = match self {
            Self::Simple => ",",
            Self::Reserved | Self::Led('#') => return is_uri_char(c),
            Self::Led('.') => ",.",
            Self::Led('/') => ",/",
            Self::Led(';') => ",;=",
            Self::Led(_) => ",&=",
        };
        is_unreserved(c) || c == '%' || more.contains(c)
    }
}

impl Pattern {
    /// Reads a template. The error can follow the name of what was read.
    pub fn parse(template: &str) -> Result<Self, String> {
        at_most(template)?;
        let (mut parts, mut variables) = (Vec::new(), Vec::new());
        let mut expressions = 0;
        let mut rest = template;
        while !rest.is_empty() {
            let (literal, behind) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
            if !literal.is_empty() {
                parts.push(Part::Literal(read_literal(literal)?));
            }
            rest = behind;
            if let Some(inside) = rest.strip_prefix('{') {
                let Some((expression, behind)) = inside.split_once('}') else {
                    return Err("has a { without its }".into());
                };
                parts.push(Part::Expression(read_expression(
                    expression,
                    &mut variables,
                )?));
                expressions += 1;
                rest = behind;
            }
        }
        if expressions > MAX_EXPRESSIONS {
            return Err(format!(
                "has {expressions} expressions; make it at most {MAX_EXPRESSIONS}"
            ));
        }
        // One without could take every URI of every other component.
        match parts.first() {
            Some(Part::Literal(first)) if scheme(first).is_some() => Ok(Self { parts, variables }),
            _ => {
                Err("does not begin with a scheme; write it whole, such as `notes://{day}`".into())
            }
        }
    }

    /// Whether it has a variable of that name.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.variables.iter().any(|variable| variable == name)
    }

    /// Whether that is a text which the template can become.
    #[must_use]
    pub fn fits(&self, uri: &str) -> bool {
        let Some(Part::Literal(first)) = self.parts.first() else {
            return false;
        };
        if !uri.starts_with(first.as_str()) || check(uri).is_err() {
            return false;
        }
        // Where the parts so far may end. All of it is ASCII.
        let mut ends = vec![false; uri.len() + 1];
        ends[0] = true;
        for part in &self.parts {
            ends = match part {
                Part::Literal(literal) => behind_literal(uri, &ends, literal),
                Part::Expression(operator) => behind_expression(uri, &ends, *operator),
            };
        }
        ends[uri.len()]
    }

    /// How many of its characters are its own: of two templates that a URI fits, the one with more says more of it.
    #[must_use]
    pub(crate) fn literals(&self) -> usize {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(literal) => literal.len(),
                Part::Expression(_) => 0,
            })
            .sum()
    }
}

fn read_literal(literal: &str) -> Result<String, String> {
    match literal.chars().find(|c| !is_uri_char(*c)) {
        Some('}') => Err("has a } without its {".into()),
        Some(odd) => Err(format!(
            "holds {odd:?}, which stands in no URI; percent-encode it"
        )),
        None => encodings(literal).map(|()| literal.to_owned()),
    }
}

/// Reads what stands in braces, and adds its variables to those known.
fn read_expression(expression: &str, known: &mut Vec<String>) -> Result<Operator, String> {
    let wrong = |what: &str| Err(format!("has {{{}}}, {what}", cut(expression, 64)));
    let (operator, variables) = match expression.chars().next() {
        Some('+') => (Operator::Reserved, &expression[1..]),
        Some(lead @ ('#' | '.' | '/' | ';' | '?' | '&')) => (Operator::Led(lead), &expression[1..]),
        Some('=' | ',' | '!' | '@' | '|') => {
            return wrong("whose operator RFC 6570 keeps for later");
        }
        _ => (Operator::Simple, expression),
    };
    for variable in variables.split(',') {
        match variable_name(variable) {
            Some(name) => known.push(name.to_owned()),
            None => return wrong("which is no list of variables as RFC 6570 has it"),
        }
    }
    Ok(operator)
}

/// The name of a variable, without how much of it is taken.
fn variable_name(variable: &str) -> Option<&str> {
    let name = match variable.split_once(':') {
        Some((name, most)) => {
            let is_length = (1..=4).contains(&most.len())
                && most.bytes().all(|byte| byte.is_ascii_digit())
                && !most.starts_with('0');
            is_length.then_some(name)?
        }
        None => variable.strip_suffix('*').unwrap_or(variable),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
    let is_name = encodings(name).is_ok()
        && name
            .split('.')
            .all(|word| !word.is_empty() && word.chars().all(is_plain));
    is_name.then_some(name)
}

fn behind_literal(uri: &str, ends: &[bool], literal: &str) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, is_end)| **is_end) {
        if uri[at..].starts_with(literal) {
            next[at + literal.len()] = true;
        }
    }
    next
}

fn behind_expression(uri: &str, ends: &[bool], operator: Operator) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    let mut is_inside = false;
    for (at, c) in uri.char_indices() {
        let begins = match operator.lead() {
            None => ends[at] && operator.takes(c),
            Some(lead) => ends[at] && c == lead,
        };
        is_inside = begins || (is_inside && operator.takes(c));
        next[at + 1] = is_inside;
    }
    if operator.lead().is_some() {
        for (is_next, is_end) in next.iter_mut().zip(ends) {
            *is_next |= *is_end;
        }
    }
    next
}
