//! Names of tools for functions: short where that is clear, always the same, and as clients take them.

use std::collections::HashMap;
use std::fmt;

use sha2::{Digest as _, Sha256};

/// The longest name of a tool.
const MAX_NAME: usize = 64;
/// Hexadecimal digits that tell names apart whose beginnings are the same.
const DIGITS: usize = 8;

/// Where a function is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// Its interface with package and version, unless the component exports it by itself.
    pub(super) interface: Option<&'a str>,
    pub(super) function: &'a str,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.interface {
            Some(interface) => write!(f, "{interface}#{}", self.function),
            None => f.write_str(self.function),
        }
    }
}

impl Place<'_> {
    /// The interface's own name.
    fn local(&self) -> Option<&str> {
        let interface = self.interface?;
        let interface = interface.rsplit('/').next().unwrap_or(interface);
        Some(interface.split('@').next().unwrap_or(interface))
    }

    /// From the shortest to the longest.
    fn candidates(&self) -> [String; 3] {
        let function = plain(self.function);
        let Some((interface, local)) = self.interface.zip(self.local()) else {
            return [function.clone(), function.clone(), function];
        };
        [
            function.clone(),
            format!("{}.{function}", plain(local)),
            format!("{}.{function}", plain(interface)),
        ]
    }
}

/// Everything that a name of a tool cannot have becomes a dash.
fn plain(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect()
}

/// A name for each: the function's own if no other has it, else with its interface, else with that in full. None for
/// what cannot be told from another even so.
pub(super) fn of(places: &[Place<'_>]) -> Vec<Option<String>> {
    let candidates: Vec<[String; 3]> = places.iter().map(Place::candidates).collect();
    let mut counts: [HashMap<&str, usize>; 3] = Default::default();
    for names in &candidates {
        for (count, name) in counts.iter_mut().zip(names) {
            *count.entry(name).or_default() += 1;
        }
    }
    let chosen: Vec<String> = places
        .iter()
        .zip(&candidates)
        .map(|(place, names)| {
            // What the component exports by itself keeps its name, and its interfaces give way.
            let is_alone = |(at, name): (usize, &String)| {
                place.interface.is_none() || counts[at][name.as_str()] == 1
            };
            let found = names
                .iter()
                .enumerate()
                .find(|(at, name)| is_alone((*at, name)));
            let name = found.map_or(&names[2], |(_, name)| name);
            shortened(name, &place.to_string())
        })
        .collect();
    let mut taken: HashMap<&str, usize> = HashMap::new();
    for name in &chosen {
        *taken.entry(name).or_default() += 1;
    }
    chosen
        .iter()
        .map(|name| (taken[name.as_str()] == 1).then(|| name.clone()))
        .collect()
}

fn shortened(name: &str, whole: &str) -> String {
    if name.len() <= MAX_NAME {
        return name.to_owned();
    }
    let digest: String = Sha256::digest(whole)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let kept = MAX_NAME - 1 - DIGITS;
    format!("{}-{}", &name[..kept], &digest[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(places: &[(&str, &str)]) -> Vec<Option<String>> {
        let places: Vec<Place<'_>> = places
            .iter()
            .map(|(interface, function)| Place {
                interface: (!interface.is_empty()).then_some(*interface),
                function,
            })
            .collect();
        of(&places)
    }

    #[test]
    fn a_name_is_as_short_as_it_can_be_and_each_is_another() {
        let given = [
            ("", "add"),
            ("a:one/math@1.0.0", "add"),
            ("a:one/math@1.0.0", "scale"),
            ("a:two/math", "scale"),
            ("a:two/text", "join"),
        ];
        let expected = [
            "add",
            "math.add",
            "a-one-math-1.0.0.scale",
            "a-two-math.scale",
            "join",
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|name| Some((*name).to_owned()))
            .collect();
        assert_eq!(names(&given), expected);
        let mut backwards = given;
        backwards.reverse();
        let mut again = names(&backwards);
        again.reverse();
        assert_eq!(again, expected, "the order says nothing");
    }

    #[test]
    fn a_long_name_is_cut_and_told_from_others_by_a_digest() {
        let (fits, long) = ("a".repeat(64), "a".repeat(65));
        let other = format!("{}b", "a".repeat(64));
        let named = names(&[("", &fits), ("", &long), ("", &other)]);
        assert_eq!(named[0].as_deref(), Some(fits.as_str()));
        let cut: Vec<&str> = named[1..].iter().flatten().map(String::as_str).collect();
        assert!(
            cut.iter()
                .all(|name| name.len() == 64 && name.starts_with(&"a".repeat(55)))
        );
        assert_ne!(cut[0], cut[1]);
    }

    #[test]
    fn names_that_are_the_same_in_the_end_are_nobodys() {
        // Both become the same text, and neither is to be called in the place of the other.
        assert_eq!(
            names(&[("a:b/c", "f"), ("a-b/c", "f"), ("a:b/d", "g")]),
            [None, None, Some("g".to_owned())]
        );
    }
}
