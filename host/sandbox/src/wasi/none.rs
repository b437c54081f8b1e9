//! Resources that exist as types, since the interfaces name them, and of which a guest can never have
//! one.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::import::Import;
use wasmtime::Result;
use wasmtime::component::Resource;

use crate::host::State;

/// The one network, on which nothing can be done.
pub struct Network;

macro_rules! none {
    ($($name:ident: $what:literal,)*) => {
        $(
            #[doc = $what]
            pub enum $name {}

            impl None for $name {
                fn never<T>(&self) -> T {
                    match *self {}
                }
            }
        )*
    };
}

/// Something that there is not.
pub(crate) trait None: Send + 'static {
    /// Whatever is wanted of it.
    fn never<T>(&self) -> T;
}

none! {
    TerminalInput: "A terminal to read from.",
    TerminalOutput: "A terminal to write to.",
    TcpSocket: "A TCP socket: none can be made.",
    UdpSocket: "A UDP socket: none can be made.",
    IncomingDatagrams: "Datagrams from a socket.",
    OutgoingDatagrams: "Datagrams to a socket.",
    ResolvedAddresses: "Addresses of a name: none is resolved.",
    IncomingRequest: "A request to a guest: a tool is not called in this way.",
    ResponseOutparam: "Where the response to that goes.",
}

impl State {
    /// A call on something that there is not. It has no handle, so only a mistake of ours gets here, and
    /// ends as one.
    pub(super) fn on_none<T: None, R>(&mut self, import: Import, on: &Resource<T>) -> Result<R> {
        self.passes_on(import, on, 0)?;
        Ok(self.wasi.table.get(on)?.never())
    }
}
