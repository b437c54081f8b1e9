//! The contract `longshore:tool`, as generated from its WIT file.

#![expect(
    missing_docs,
    reason = "what the generator adds has none; the items of the contract do"
)]

wit_bindgen::generate!({
    world: "tool-component",
    path: "../../wit",
    additional_derives: [PartialEq, Eq],
    default_bindings_module: "longshore_guest::bindings",
    pub_export_macro: true,
});
