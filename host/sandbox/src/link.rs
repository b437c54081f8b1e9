//! Whether a component fits: it needs only what there is, and offers what a tool offers.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, HasSelf, Instance, InstancePre, Lift,
    Linker, Lower,
};
use wasmtime::{Engine, Store};

use crate::bindings::Guest;
use crate::bindings::exports::longshore::tool::tools::Tool;
use crate::bindings::longshore::tool::types::{CallError, ToolResult};
use crate::fault::Halt;
use crate::host::State;
use crate::pool::{Each, Engines};
use crate::precheck::Facts;
use crate::refusal::{Reason, Refusal};
use crate::sandbox::WasiKind;
use crate::wasi;

const TOOLS: &str = "longshore:tool/tools@0.1.0";
/// The same in any version that fits.
const ANY_TOOLS: &str = "longshore:tool/tools@0.1.";
const RESTART: &str = "longshore:tool/restart@0.1.0";

/// What a tool returns.
pub(crate) type Returned = Result<ToolResult, CallError>;
type Call<'a> = (&'a str, &'a str);
type Resume<'a> = (&'a str, &'a str, &'a [u8]);

/// A component that fits, ready to be instantiated.
pub(crate) type Fitted = Each<Form>;

/// The same for one engine.
pub(crate) struct Form {
    ready: InstancePre<State>,
    list_tools: ComponentExportIndex,
    call_tool: ComponentExportIndex,
    /// Where it goes on from a restart point, if it saves any.
    resume: Option<ComponentExportIndex>,
}

/// An instance of one. Its functions are looked up when they are called: a run calls one of them.
pub(crate) struct Entered<'a> {
    instance: Instance,
    form: &'a Form,
}

impl Form {
    /// Makes an instance; its start functions run here.
    pub(crate) async fn instantiate(
        &self,
        store: &mut Store<State>,
    ) -> wasmtime::Result<Entered<'_>> {
        let instance = self.ready.instantiate_async(store).await?;
        Ok(Entered {
            instance,
            form: self,
        })
    }
}

impl Entered<'_> {
    /// Lists the tools.
    pub(crate) async fn list_tools(&self, store: &mut Store<State>) -> wasmtime::Result<Vec<Tool>> {
        let list = self
            .instance
            .get_typed_func::<(), (Vec<Tool>,)>(&mut *store, &self.form.list_tools)?;
        let (tools,) = list.call_async(store, ()).await?;
        Ok(tools)
    }

    /// Calls a tool.
    pub(crate) async fn call_tool(
        &self,
        store: &mut Store<State>,
        tool: &str,
        arguments: &str,
    ) -> wasmtime::Result<Returned> {
        let call = self
            .instance
            .get_typed_func::<Call<'_>, (Returned,)>(&mut *store, &self.form.call_tool)?;
        let (returned,) = call.call_async(store, (tool, arguments)).await?;
        Ok(returned)
    }

    /// Goes on from a restart point.
    pub(crate) async fn resume_tool(
        &self,
        store: &mut Store<State>,
        tool: &str,
        arguments: &str,
        state: &[u8],
    ) -> wasmtime::Result<Returned> {
        let Some(index) = &self.form.resume else {
            // A component that saves restart points has it, or it was refused.
            return Err(Halt::Bug("a restart point of a component that saves none".into()).into());
        };
        let resume = self
            .instance
            .get_typed_func::<Resume<'_>, (Returned,)>(&mut *store, index)?;
        let (returned,) = resume.call_async(store, (tool, arguments, state)).await?;
        Ok(returned)
    }
}

/// Everything that a component may import, for each engine.
pub(crate) struct Links(Each<Link>);

/// The same for one.
struct Link {
    linker: Linker<State>,
}

impl Links {
    /// Everything that there is.
    pub(crate) fn new(engines: &Engines, kind: WasiKind) -> wasmtime::Result<Self> {
        engines.each(|engine| Link::new(engine, kind)).map(Self)
    }

    /// The component, ready to be instantiated, or why it cannot be.
    pub(crate) fn fit(&self, component: &Each<Component>) -> Result<Fitted, Refusal> {
        let pooled = match (&self.0.pooled, &component.pooled) {
            (Some(link), Some(component)) => Some(link.fit(component)?),
            _ => None,
        };
        let own = self.0.own.fit(&component.own)?;
        Ok(Fitted { own, pooled })
    }
}

impl Link {
    /// The whole WASI 0.2 command world, outgoing HTTP, and our own package: always all of it, for
    /// what a component may really do is decided behind each import.
    fn new(engine: &Engine, kind: WasiKind) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        match kind {
            WasiKind::Virtual => wasi::add_to_linker(&mut linker)?,
            WasiKind::Host => {
                wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
                wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
            }
        }
        Guest::add_to_linker::<_, HasSelf<State>>(&mut linker, |state| state)?;
        Ok(Self { linker })
    }

    fn fit(&self, component: &Component) -> Result<Form, Refusal> {
        let checkpoint = self.check_imports(component)?;
        let ready = self
            .linker
            .instantiate_pre(component)
            .map_err(|error| Refusal::new(Reason::Import, format!("{error:#}")))?;
        check_exports(component, ready, checkpoint.as_deref())
    }

    /// Refuses unknown packages, and finds the import through which restart points are saved.
    fn check_imports(&self, component: &Component) -> Result<Option<String>, Refusal> {
        let engine = self.linker.engine();
        let mut checkpoint = None;
        for (name, item) in component.component_type().imports(engine) {
            known(name)?;
            if let ComponentItem::ComponentInstance(instance) = item.ty
                && name.starts_with("longshore:tool/task@")
                && instance.get_export(engine, "checkpoint").is_some()
            {
                checkpoint = Some(name.to_owned());
            }
        }
        Ok(checkpoint)
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

/// What the names of imports and exports tell already, before anything is compiled.
pub(crate) fn names_fit(facts: &Facts) -> Result<(), Refusal> {
    for import in &facts.imports {
        known(import)?;
    }
    let exports = || facts.exports.iter().map(String::as_str);
    if exports().any(|name| name.starts_with(ANY_TOOLS)) {
        Ok(())
    } else {
        Err(no_tools(exports()))
    }
}

fn known(import: &str) -> Result<(), Refusal> {
    if is_known(import) {
        return Ok(());
    }
    let message = format!(
        "import `{import}` is of a package that nothing here provides; \
         there are longshore:tool 0.1, the WASI 0.2 command world and wasi:http 0.2"
    );
    Err(Refusal::new(Reason::Import, message))
}

fn no_tools<'n>(exports: impl Iterator<Item = &'n str>) -> Refusal {
    let exports: Vec<_> = exports.take(8).map(|name| format!("`{name}`")).collect();
    let exports = if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    };
    Refusal::new(
        Reason::World,
        format!("export `{TOOLS}` is missing; there is {exports}"),
    )
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

fn world(message: String) -> Refusal {
    Refusal::new(Reason::World, message)
}

/// Checks and finds what is called later.
fn check_exports(
    component: &Component,
    ready: InstancePre<State>,
    checkpoint: Option<&str>,
) -> Result<Form, Refusal> {
    let kind = component.component_type();
    let engine = component.engine();
    let names = || kind.exports(engine).map(|(name, _)| name);
    let restart = restart(component, checkpoint)?;
    let Some(tools) = component.get_export_index(None, TOOLS) else {
        return Err(no_tools(names()));
    };
    let of_tools = (TOOLS, &tools);
    let list_tools = typecheck::<(), (Vec<Tool>,)>(component, &ready, of_tools, "list-tools")?;
    let call_tool = typecheck::<Call<'_>, (Returned,)>(component, &ready, of_tools, "call-tool")?;
    let resume = restart
        .map(|restart| {
            let of_restart = (RESTART, &restart);
            typecheck::<Resume<'_>, (Returned,)>(component, &ready, of_restart, "resume-tool")
        })
        .transpose()?;
    Ok(Form {
        ready,
        list_tools,
        call_tool,
        resume,
    })
}

/// Where a component goes on from its restart points. It has to be able to save some and to go on from
/// them, or neither.
fn restart(
    component: &Component,
    checkpoint: Option<&str>,
) -> Result<Option<ComponentExportIndex>, Refusal> {
    match (component.get_export_index(None, RESTART), checkpoint) {
        (None, Some(import)) => Err(world(format!(
            "it imports `checkpoint` of `{import}` and does not export `{RESTART}`: \
             nothing could go on from the points that it saves"
        ))),
        (Some(_), None) => Err(world(format!(
            "it exports `{RESTART}` and does not import `checkpoint` of `longshore:tool/task`: \
             it would never be entered there"
        ))),
        (restart, _) => Ok(restart),
    }
}

/// The function of that name in an exported instance, if it has that type.
fn typecheck<Params, Results>(
    component: &Component,
    ready: &InstancePre<State>,
    (interface, instance): (&str, &ComponentExportIndex),
    name: &str,
) -> Result<ComponentExportIndex, Refusal>
where
    Params: ComponentNamedList + Lower,
    Results: ComponentNamedList + Lift,
{
    let (function, index) = match component.get_export(Some(instance), name) {
        Some((ComponentItem::ComponentFunc(function), index)) => (function, index),
        Some(_) => {
            return Err(world(format!(
                "export `{interface}` has `{name}`, but not as a function"
            )));
        }
        None => {
            return Err(world(format!(
                "export `{interface}` has no function `{name}`"
            )));
        }
    };
    let differs = |error: wasmtime::Error| {
        world(format!(
            "function `{name}` of export `{interface}` has another type: {error:#}"
        ))
    };
    if function.async_() {
        return Err(differs(wasmtime::format_err!(
            "it is async, and version 0.1 is not"
        )));
    }
    function
        .typecheck::<Params, Results>(&ready.instance_type())
        .map_err(differs)?;
    Ok(index)
}
