//! The interfaces of a tool and of WASI, as Rust. The only place where they are generated.
//!
//! The world has all that a component may export; which of it one does is looked up interface by interface.

wasmtime::component::bindgen!({
    path: "../../wit",
    inline: "
        package longshore:host;

        world guest {
            import longshore:tool/task@0.1.0;
            import longshore:tool/restart-points@0.1.0;
            import longshore:tool/changes@0.1.0;
            import longshore:tool/wait@0.1.0;
            import longshore:tool/key-value@0.1.0;
            import longshore:tool/artifacts@0.1.0;
            export longshore:tool/tools@0.1.0;
            export longshore:tool/resources@0.1.0;
            export longshore:tool/prompts@0.1.0;
            export longshore:tool/completions@0.1.0;
        }
    ",
    world: "longshore:host/guest",
    imports: { default: async | trappable },
    exports: { default: async },
});

/// What a tool can import of WASI 0.2. Only what can really wait is asynchronous.
pub(crate) mod wasi_world {
    use crate::wasi::{clocks, files, http, io, none};

    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package longshore:host-wasi;

            world wasi {
                include wasi:cli/imports@0.2.12;
                import wasi:http/outgoing-handler@0.2.12;
            }
        ",
        world: "longshore:host-wasi/wasi",
        imports: {
            "wasi:io/poll.poll": async | trappable,
            "wasi:io/poll.[method]pollable.block": async | trappable,
            // These may have to ask what became of a request of an earlier process, or to keep one first.
            "wasi:io/poll.[method]pollable.ready": async | trappable,
            "wasi:http/outgoing-handler.handle": async | trappable,
            "wasi:http/types.[static]outgoing-body.finish": async | trappable,
            "wasi:http/types.[method]future-incoming-response.get": async | trappable,
            default: trappable,
        },
        trappable_error_type: {
            "wasi:io/streams.stream-error" => io::StreamError,
            "wasi:filesystem/types.error-code" => files::FileError,
            "wasi:http/types.header-error" => http::FieldsError,
        },
        with: {
            "wasi:io/error.error": io::Failure,
            "wasi:io/poll.pollable": clocks::Pollable,
            "wasi:io/streams.input-stream": io::Input,
            "wasi:io/streams.output-stream": io::Output,
            "wasi:cli/terminal-input.terminal-input": none::TerminalInput,
            "wasi:cli/terminal-output.terminal-output": none::TerminalOutput,
            "wasi:filesystem/types.descriptor": files::Descriptor,
            "wasi:filesystem/types.directory-entry-stream": files::Listing,
            "wasi:sockets/network.network": none::Network,
            "wasi:sockets/tcp.tcp-socket": none::TcpSocket,
            "wasi:sockets/udp.udp-socket": none::UdpSocket,
            "wasi:sockets/udp.incoming-datagram-stream": none::IncomingDatagrams,
            "wasi:sockets/udp.outgoing-datagram-stream": none::OutgoingDatagrams,
            "wasi:sockets/ip-name-lookup.resolve-address-stream": none::ResolvedAddresses,
            "wasi:http/types.fields": http::Fields,
            "wasi:http/types.outgoing-request": http::Request,
            "wasi:http/types.request-options": http::Options,
            "wasi:http/types.outgoing-body": http::Body,
            "wasi:http/types.outgoing-response": http::Response,
            "wasi:http/types.incoming-request": none::IncomingRequest,
            "wasi:http/types.response-outparam": none::ResponseOutparam,
            "wasi:http/types.incoming-response": http::Incoming,
            "wasi:http/types.incoming-body": http::IncomingBody,
            "wasi:http/types.future-trailers": http::Trailers,
            "wasi:http/types.future-incoming-response": http::Future,
        },
        require_store_data_send: true,
    });
}
