//! What somebody may have meant.

/// More differences than this and a suggestion only misleads.
const MOST: usize = 3;

/// The known name that is nearest to what was written, if one is near.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    known
        .into_iter()
        .map(|name| (distance(&written, &name.to_ascii_lowercase()), name))
        .filter(|(distance, name)| *distance <= MOST.min(name.len() / 2))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The known names, the nearest to what was written first.
#[must_use]
pub fn by_distance<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let written = written.to_ascii_lowercase();
    let mut names: Vec<&str> = known.into_iter().collect();
    if !written.is_empty() {
        names.sort_by_key(|name| distance(&written, &name.to_ascii_lowercase()));
    }
    names
}

/// How many characters must be put in, taken out or replaced to get from one to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (from, to, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["grace_ms", "deadline_ms", "limits.cpu_ms"];
        assert_eq!(nearest("grace_m", known), Some("grace_ms"));
        assert_eq!(nearest("limits.cpu_s", known), Some("limits.cpu_ms"));
        assert_eq!(nearest("GRACE_MS", known), Some("grace_ms"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
