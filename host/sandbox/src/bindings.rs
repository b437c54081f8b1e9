//! The interface of a tool, as Rust. The only place where it is generated.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package longshore:host;

        world guest {
            import longshore:tool/task@0.1.0;
            import longshore:tool/changes@0.1.0;
            export longshore:tool/tools@0.1.0;
        }
    ",
    world: "longshore:host/guest",
    imports: { default: async | trappable },
    exports: { default: async },
});
