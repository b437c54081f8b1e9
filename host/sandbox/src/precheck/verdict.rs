//! What the engine's own refusal of a component means, in our words.

use crate::refusal::{Reason, Refusal};

/// Puts a word to an error of validating or compiling.
pub(crate) fn of(error: &wasmtime::Error) -> Refusal {
    // The chain's last link has the sentence; the ones before it say where the engine was.
    let text = error.root_cause().to_string();
    if let Some(invalid) = error.downcast_ref::<wasmparser::Error>()
        && let Some(feature) = invalid.missing_wasm_feature()
    {
        let names: Vec<String> = feature
            .iter_names()
            .map(|(name, _)| name.to_ascii_lowercase().replace('_', "-"))
            .collect();
        return Refusal::new(
            Reason::FeatureOff,
            format!("{} is switched off here: {text}", names.join(", ")),
        );
    }
    Refusal::new(reason(&text), text)
}

/// Where the engine has only a sentence for us. The sentences are those of the exact version that we
/// build with, and every one has its test; an unknown one is `malformed`.
fn reason(text: &str) -> Reason {
    const SENTENCES: [(&str, Reason); 12] = [
        ("type nesting is too deep", Reason::TypeDepth),
        ("effective type size exceeds the limit", Reason::TypeSize),
        ("support is not enabled", Reason::FeatureOff),
        ("proposal not enabled", Reason::FeatureOff),
        ("proposal not supported", Reason::FeatureOff),
        ("proposal disabled", Reason::FeatureOff),
        ("feature is not active", Reason::FeatureOff),
        ("feature required for", Reason::FeatureOff),
        ("when stack switching is disabled", Reason::FeatureOff),
        ("Code for function is too large", Reason::FunctionSize),
        ("Implementation limit exceeded", Reason::CompileLimit),
        ("Cannot allocate memory", Reason::CompileLimit),
    ];
    SENTENCES
        .iter()
        .find(|(sentence, _)| text.contains(sentence))
        .map_or(Reason::Malformed, |(_, reason)| *reason)
}
