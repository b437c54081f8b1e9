//! Whether a component fits: it needs only what there is, and offers what a tool offers.

use wasmtime::Engine;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentNamedList, HasSelf, InstancePre, Lift, Linker, Lower,
};

use crate::bindings::exports::longshore::tool::tools::Tool;
use crate::bindings::longshore::tool::types::{CallError, ToolResult};
use crate::bindings::{Guest, GuestPre};
use crate::host::State;
use crate::refusal::{Reason, Refusal};

const TOOLS: &str = "longshore:tool/tools@0.1.0";

/// Everything that a component may import.
pub(crate) struct Links {
    linker: Linker<State>,
}

impl Links {
    /// The whole WASI 0.2 command world, outgoing HTTP, and our own package: always all of it, for
    /// what a component may really do is decided behind each import.
    pub(crate) fn new(engine: &Engine) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        Guest::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        Ok(Self { linker })
    }

    /// The component, ready to be instantiated, or why it cannot be.
    pub(crate) fn fit(&self, component: &Component) -> Result<GuestPre<State>, Refusal> {
        self.refuse_unknown_imports(component)?;
        let ready = self
            .linker
            .instantiate_pre(component)
            .map_err(|error| Refusal::new(Reason::Import, format!("{error:#}")))?;
        check_exports(component, &ready)?;
        GuestPre::new(ready).map_err(|error| Refusal::new(Reason::World, format!("{error:#}")))
    }

    fn refuse_unknown_imports(&self, component: &Component) -> Result<(), Refusal> {
        let engine = self.linker.engine();
        for (name, item) in component.component_type().imports(engine) {
            if !is_known(name) {
                let message = format!(
                    "import `{name}` is of a package that nothing here provides; \
                     there are longshore:tool 0.1, the WASI 0.2 command world and wasi:http 0.2"
                );
                return Err(Refusal::new(Reason::Import, message));
            }
            if let ComponentItem::ComponentInstance(instance) = item.ty
                && name.starts_with("longshore:tool/task@")
                && instance.get_export(engine, "checkpoint").is_some()
            {
                let message =
                    format!("`checkpoint` of import `{name}` is not served here: build without it");
                return Err(Refusal::new(Reason::World, message));
            }
        }
        Ok(())
    }
}

/// Names of components' imports, for whoever wants to know what one could touch.
pub(crate) fn imports(component: &Component) -> Vec<String> {
    component
        .component_type()
        .imports(component.engine())
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn is_known(import: &str) -> bool {
    const PACKAGES: [&str; 8] = [
        "longshore:tool",
        "wasi:cli",
        "wasi:clocks",
        "wasi:filesystem",
        "wasi:http",
        "wasi:io",
        "wasi:random",
        "wasi:sockets",
    ];
    import
        .split_once('/')
        .is_some_and(|(package, _)| PACKAGES.contains(&package))
}

fn check_exports(component: &Component, ready: &InstancePre<State>) -> Result<(), Refusal> {
    let world = |message: String| Refusal::new(Reason::World, message);
    let kind = component.component_type();
    let engine = component.engine();
    if let Some((name, _)) = kind
        .exports(engine)
        .find(|(name, _)| name.starts_with("longshore:tool/restart@"))
    {
        return Err(world(format!(
            "export `{name}` is not served here: build without it"
        )));
    }
    let Some(tools) = component.get_export_index(None, TOOLS) else {
        let mut exports: Vec<_> = kind
            .exports(engine)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        exports.truncate(8);
        let exports = if exports.is_empty() {
            "nothing".to_owned()
        } else {
            exports.join(", ")
        };
        return Err(world(format!(
            "export `{TOOLS}` is missing; there is {exports}"
        )));
    };
    let function = |name: &str| match component.get_export(Some(&tools), name) {
        Some((ComponentItem::ComponentFunc(function), _)) => Ok(function),
        Some(_) => Err(world(format!(
            "export `{TOOLS}` has `{name}`, but not as a function"
        ))),
        None => Err(world(format!("export `{TOOLS}` has no function `{name}`"))),
    };
    let differs = |name: &str, error: wasmtime::Error| {
        world(format!(
            "function `{name}` of export `{TOOLS}` has another type: {error:#}"
        ))
    };
    let list = function("list-tools")?;
    typecheck::<(), (Vec<Tool>,)>(&list, ready).map_err(|error| differs("list-tools", error))?;
    let call = function("call-tool")?;
    typecheck::<(&str, &str), (Result<ToolResult, CallError>,)>(&call, ready)
        .map_err(|error| differs("call-tool", error))
}

fn typecheck<Params, Results>(
    function: &wasmtime::component::types::ComponentFunc,
    ready: &InstancePre<State>,
) -> wasmtime::Result<()>
where
    Params: ComponentNamedList + Lower,
    Results: ComponentNamedList + Lift,
{
    if function.async_() {
        wasmtime::bail!("it is async, and version 0.1 is not");
    }
    function.typecheck::<Params, Results>(&ready.instance_type())
}
