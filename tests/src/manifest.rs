//! Components that say what they need.

use crate::guests;

/// The example of that name with a manifest.
///
/// # Panics
/// If it is not built.
#[must_use]
pub fn with_manifest(example: &str, manifest: &str) -> Vec<u8> {
    let path = guests::component(example);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    with_section(bytes, "longshore:manifest", manifest.as_bytes())
}

/// The component with one more section behind all others.
#[must_use]
pub fn with_section(mut component: Vec<u8>, name: &str, content: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    number(&mut section, name.len());
    section.extend(name.as_bytes());
    section.extend(content);
    component.push(0);
    number(&mut component, section.len());
    component.extend(section);
    component
}

/// A number as the format has it: seven bits a byte, the lowest first.
fn number(bytes: &mut Vec<u8>, mut number: usize) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("it has seven bits");
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}
