//! `wasi:http`, as generated from its WIT files.

wit_bindgen::generate!({
    inline: "
        package longshore:guest-http;

        world requests {
            import wasi:http/outgoing-handler@0.2.12;
        }
    ",
    path: "../../wit",
    world: "longshore:guest-http/requests",
    generate_all,
});
