//! The contract `longshore:tool`, as generated from its WIT file.

#![expect(
    missing_docs,
    reason = "what the generator adds has none; the items of the contract do"
)]

wit_bindgen::generate!({
    // All that the helper speaks of. What a component does not use is left out of it.
    inline: "
        package longshore:guest;

        world helper {
            include longshore:tool/tool-component@0.1.0;
            import longshore:tool/changes@0.1.0;
            import longshore:tool/key-value@0.1.0;
            import longshore:tool/artifacts@0.1.0;
            import longshore:tool/restart-points@0.1.0;
            import longshore:tool/wait@0.1.0;
        }
    ",
    path: "../../wit",
    world: "longshore:guest/helper",
    generate_all,
    additional_derives: [PartialEq, Eq],
});
