//! Whether a component fits: it needs only what there is, and offers something that can be called, read or filled in.

use longshore_policy::limits::Limits;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Component, ComponentExportIndex, ComponentNamedList, HasSelf, Instance, InstancePre, Lift,
    Linker, Lower, Val,
};
use wasmtime::{Engine, Store};

use crate::bindings::Guest;
use crate::bindings::exports::longshore::tool::{completions, prompts, resources, tools};
use crate::bindings::longshore::tool::types::{CallError, ToolResult};
use crate::command::{self, Left};
use crate::dirs;
use crate::ending::Fault;
use crate::fault::{self, Halt};
use crate::host::State;
use crate::journal::Entry;
use crate::library::{self, Prompted, Read};
use crate::offer::{Offer, Shape};
use crate::output::Answer;
use crate::pool::{Each, Engines};
use crate::precheck::Facts;
use crate::refusal::{Reason, Refusal};
use crate::sandbox::WasiKind;
use crate::target::{Reference, Target};
use crate::typed::docs::Docs;
use crate::typed::{self, TooMany, Typed};
use crate::wasi;

const TOOLS: &str = "longshore:tool/tools@0.1.0";
const RESOURCES: &str = "longshore:tool/resources@0.1.0";
const PROMPTS: &str = "longshore:tool/prompts@0.1.0";
const COMPLETIONS: &str = "longshore:tool/completions@0.1.0";
/// What a program exports, in any version that fits.
const RUN: &str = "wasi:cli/run@0.2.";
const RESTART: &str = "longshore:tool/restart@0.1.0";
/// What a component offers stands in one of these, in any version that fits.
const OFFERING: [&str; 3] = [
    "longshore:tool/tools@0.1.",
    "longshore:tool/resources@0.1.",
    "longshore:tool/prompts@0.1.",
];

/// What a tool returns.
type Called = Result<ToolResult, CallError>;
type Call<'a> = (&'a str, &'a str);
type Resume<'a> = (&'a str, &'a str, &'a [u8]);
type Complete<'a> = (&'a completions::Reference, &'a str, &'a str, &'a str);

/// What a run returned, as it came.
pub(crate) enum Returned {
    Tool(Called),
    Read(Read),
    Prompted(Prompted),
    Completed(completions::Completion),
    /// What a function or a program came to, or why it cannot be handed on.
    Answered(Result<Answer, Fault>),
}

/// A component that fits, ready to be instantiated.
pub(crate) type Fitted = Each<Form>;

/// The same for one engine.
pub(crate) struct Form {
    ready: InstancePre<State>,
    /// Where each list is, and what is called for one of its items.
    tools: Option<[ComponentExportIndex; 2]>,
    /// Likewise, with the list of templates between the two.
    resources: Option<[ComponentExportIndex; 3]>,
    prompts: Option<[ComponentExportIndex; 2]>,
    completions: Option<ComponentExportIndex>,
    /// Where it goes on from a restart point, if it saves any.
    resume: Option<ComponentExportIndex>,
    /// What it is if it lists nothing by itself.
    other: Option<Other>,
}

/// What makes a component a tool that is none by itself.
enum Other {
    Library(Typed),
    /// With what runs it.
    Command(ComponentExportIndex),
}

/// An instance of one. Its functions are looked up when they are called: a run calls one of them.
pub(crate) struct Entered<'a> {
    instance: Instance,
    form: &'a Form,
}

impl Form {
    /// Whether it has something to read or to fill in.
    pub(crate) fn has_library(&self) -> bool {
        self.resources.is_some() || self.prompts.is_some()
    }

    /// Whether it is a program.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self.other, Some(Other::Command(_)))
    }

    /// What one crossing into or out of it may carry. The values of a function whose types are its own take far more
    /// room than the same as JSON, by which results are bounded: bytes as base64 most of all.
    pub(crate) fn hostcall_bytes(&self, limits: &Limits) -> u64 {
        match self.other {
            Some(Other::Library(_)) => {
                let values = limits.result_bytes / 4 * 3 * size_of::<Val>() as u64;
                limits.hostcall_bytes.max(values)
            }
            Some(Other::Command(_)) | None => limits.hostcall_bytes,
        }
    }

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

/// What is to be known of a component that lists nothing by itself.
#[derive(Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The name of the one tool that a program is.
    pub(crate) name: &'a str,
    /// What its author wrote about its functions.
    pub(crate) docs: &'a Docs,
    /// Whether a program is asked for its usage.
    pub(crate) usage: bool,
}

/// An interface that the component has, or nothing of it would have been called.
fn there<T>(interface: Option<&T>) -> wasmtime::Result<&T> {
    interface.ok_or_else(|| Halt::Bug("a call of what the component does not export".into()).into())
}

impl Entered<'_> {
    async fn function<Params, Results>(
        &self,
        store: &mut Store<State>,
        index: &ComponentExportIndex,
        params: Params,
    ) -> wasmtime::Result<Results>
    where
        Params: ComponentNamedList + Lower + Send + Sync,
        Results: ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let function = self
            .instance
            .get_typed_func::<Params, Results>(&mut *store, index)?;
        function.call_async(store, params).await
    }

    /// Calls a function of a library.
    async fn call_function(
        &self,
        store: &mut Store<State>,
        functions: &Typed,
        (name, arguments): Call<'_>,
        limits: &Limits,
    ) -> wasmtime::Result<Result<Answer, Fault>> {
        let (index, kind) = there(functions.find(name).as_ref()).copied()?;
        let params = match typed::arguments(kind, arguments) {
            Ok(params) => params,
            Err(wrong) => return Ok(Ok(Answer::refused(wrong))),
        };
        let mut results = vec![Val::Bool(false); kind.results().len()];
        let function = self.instance.get_func(&mut *store, index);
        let function = there(function.as_ref()).copied()?;
        function.call_async(store, &params, &mut results).await?;
        Ok(typed::answer(kind, &results, limits.result_bytes))
    }

    /// Runs a program to its end, however it comes to that.
    async fn run_program<T>(
        &self,
        store: &mut Store<State>,
        run: &ComponentExportIndex,
        read: impl FnOnce(&Left<'_>) -> T,
    ) -> wasmtime::Result<T> {
        let ran = self.function::<(), (Result<(), ()>,)>(&mut *store, run, ());
        let exit = match ran.await {
            Ok((Ok(()),)) => 0,
            Ok((Err(()),)) => 1,
            Err(error) => fault::exit_status(&error).ok_or(error)?,
        };
        let wasi = &store.data().wasi;
        let given = there(wasi.program.as_deref())?;
        let (stdout, stderr) = wasi.heads();
        Ok(read(&Left {
            exit,
            stdout,
            stderr,
            given,
            files: &wasi.files,
        }))
    }

    /// Calls the one function that this is about.
    pub(crate) async fn call(
        &self,
        store: &mut Store<State>,
        target: &Target,
        entry: &Entry,
        limits: &Limits,
    ) -> wasmtime::Result<Returned> {
        let form = self.form;
        if let (Target::Tool { name, arguments }, Some(other)) = (target, &form.other) {
            return Ok(Returned::Answered(match other {
                Other::Library(functions) => {
                    let call = (name.as_str(), arguments.as_str());
                    self.call_function(store, functions, call, limits).await?
                }
                Other::Command(run) => {
                    let answer = |left: &Left<'_>| left.answer(limits);
                    Ok(self.run_program(store, run, answer).await?)
                }
            }));
        }
        Ok(match target {
            Target::Tool { name, arguments } => match entry {
                Entry::Call => {
                    let [_, call] = there(form.tools.as_ref())?;
                    let params: Call<'_> = (name, arguments);
                    let (returned,) = self.function(store, call, params).await?;
                    Returned::Tool(returned)
                }
                Entry::Resume(state) => {
                    let resume = there(form.resume.as_ref())?;
                    let params: Resume<'_> = (name, arguments, state);
                    let (returned,) = self.function(store, resume, params).await?;
                    Returned::Tool(returned)
                }
            },
            Target::Resource { uri } => {
                let [_, _, read] = there(form.resources.as_ref())?;
                let (returned,) = self.function(store, read, (uri.as_str(),)).await?;
                Returned::Read(returned)
            }
            Target::Prompt { name, arguments } => {
                let [_, get] = there(form.prompts.as_ref())?;
                let params: Call<'_> = (name, arguments);
                let (returned,) = self.function(store, get, params).await?;
                Returned::Prompted(returned)
            }
            Target::Completion {
                of,
                argument,
                value,
                context,
            } => {
                let of = match of {
                    Reference::Prompt(name) => completions::Reference::Prompt(name.clone()),
                    Reference::Template(text) => {
                        completions::Reference::ResourceTemplate(text.clone())
                    }
                };
                let complete = there(form.completions.as_ref())?;
                let params: Complete<'_> = (&of, argument, value, context);
                let (returned,) = self.function(store, complete, params).await?;
                Returned::Completed(returned)
            }
        })
    }

    /// Asks for every list that there is, one after the other; `asked` is the one that it is at.
    pub(crate) async fn list(
        &self,
        store: &mut Store<State>,
        asked: &mut Reason,
        Asking { name, docs, usage }: Asking<'_>,
    ) -> wasmtime::Result<Offer> {
        let form = self.form;
        let mut offer = Offer {
            completes: form.completions.is_some(),
            ..Offer::default()
        };
        match &form.other {
            Some(Other::Library(functions)) => {
                offer.shape = Shape::Library;
                (offer.tools, offer.left_out) = functions.tools(docs);
                return Ok(offer);
            }
            Some(Other::Command(run)) => {
                offer.shape = Shape::Command;
                let usage = if usage {
                    *asked = Reason::ListTools;
                    let usage = |left: &Left<'_>| left.usage();
                    self.run_program(store, run, usage).await?
                } else {
                    None
                };
                offer.tools.push(command::tool(name, usage.as_deref()));
                return Ok(offer);
            }
            None => {}
        }
        if let Some([list, _]) = &form.tools {
            *asked = Reason::ListTools;
            let (listed,): (Vec<tools::Tool>,) = self.function(&mut *store, list, ()).await?;
            offer.tools = listed.into_iter().map(library::tool).collect();
        }
        if let Some([list, templates, _]) = &form.resources {
            *asked = Reason::ListResources;
            let (listed,): (Vec<resources::ResourceInfo>,) =
                self.function(&mut *store, list, ()).await?;
            offer.resources = listed.into_iter().map(library::resource).collect();
            *asked = Reason::ListTemplates;
            let (listed,): (Vec<resources::Template>,) =
                self.function(&mut *store, templates, ()).await?;
            offer.templates = listed.into_iter().map(library::template).collect();
        }
        if let Some([list, _]) = &form.prompts {
            *asked = Reason::ListPrompts;
            let (listed,): (Vec<prompts::Prompt>,) = self.function(&mut *store, list, ()).await?;
            offer.prompts = listed.into_iter().map(library::prompt).collect();
        }
        Ok(offer)
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
                dirs::guard(&mut linker)?;
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
                && name.starts_with("longshore:tool/restart-points@")
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
    let offers = |name: &str| {
        let lists = OFFERING.iter().any(|offering| name.starts_with(offering));
        lists || name.starts_with(RUN) || typed::may_be(name)
    };
    if exports().any(offers) {
        Ok(())
    } else {
        Err(offers_nothing(exports()))
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

fn offers_nothing<'n>(exports: impl Iterator<Item = &'n str>) -> Refusal {
    let exports: Vec<_> = exports.take(8).map(|name| format!("`{name}`")).collect();
    let exports = if exports.is_empty() {
        "nothing".to_owned()
    } else {
        exports.join(", ")
    };
    Refusal::new(
        Reason::World,
        format!(
            "it exports none of `{TOOLS}`, `{RESOURCES}`, `{PROMPTS}` and `{RUN}x`, and no functions of its own; \
             there is {exports}"
        ),
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
    let restart = restart(component, checkpoint)?;
    let find = |interface| component.get_export_index(None, interface);
    let [tools, resources, prompts, completions] =
        [TOOLS, RESOURCES, PROMPTS, COMPLETIONS].map(find);
    let other = if tools.is_none() && resources.is_none() && prompts.is_none() {
        Some(other(component, &ready)?)
    } else {
        None
    };
    let tools = match &tools {
        Some(tools) => {
            let at = (TOOLS, tools);
            Some([
                typecheck::<(), (Vec<tools::Tool>,)>(component, &ready, at, "list-tools")?,
                typecheck::<Call<'_>, (Called,)>(component, &ready, at, "call-tool")?,
            ])
        }
        None => None,
    };
    let resources = match &resources {
        Some(resources) => {
            type Infos = Vec<resources::ResourceInfo>;
            type Templates = Vec<resources::Template>;
            let at = (RESOURCES, resources);
            Some([
                typecheck::<(), (Infos,)>(component, &ready, at, "list-resources")?,
                typecheck::<(), (Templates,)>(component, &ready, at, "list-templates")?,
                typecheck::<(&str,), (Read,)>(component, &ready, at, "read-resource")?,
            ])
        }
        None => None,
    };
    let prompts = match &prompts {
        Some(prompts) => {
            let at = (PROMPTS, prompts);
            Some([
                typecheck::<(), (Vec<prompts::Prompt>,)>(component, &ready, at, "list-prompts")?,
                typecheck::<Call<'_>, (Prompted,)>(component, &ready, at, "get-prompt")?,
            ])
        }
        None => None,
    };
    let completions = completions
        .map(|completions| {
            type Completed = completions::Completion;
            let at = (COMPLETIONS, &completions);
            typecheck::<Complete<'_>, (Completed,)>(component, &ready, at, "complete")
        })
        .transpose()?;
    let resume = restart
        .map(|restart| {
            let at = (RESTART, &restart);
            typecheck::<Resume<'_>, (Called,)>(component, &ready, at, "resume-tool")
        })
        .transpose()?;
    Ok(Form {
        ready,
        tools,
        resources,
        prompts,
        completions,
        resume,
        other,
    })
}

/// What a component is that lists nothing: a program, or else a library.
fn other(component: &Component, ready: &InstancePre<State>) -> Result<Other, Refusal> {
    let kind = component.component_type();
    let names = || kind.exports(component.engine()).map(|(name, _)| name);
    if let Some(run) = names().find(|name| name.starts_with(RUN))
        && let Some(instance) = component.get_export_index(None, run)
    {
        type Ran = (Result<(), ()>,);
        return typecheck::<(), Ran>(component, ready, (run, &instance), "run").map(Other::Command);
    }
    let functions = typed::of(component).map_err(|TooMany(count)| {
        Refusal::new(
            Reason::TooManyFunctions,
            format!(
                "it exports {count} functions that would each be a tool, and a component has at most {}; \
                 split it into several",
                typed::MAX_FUNCTIONS
            ),
        )
    })?;
    if !functions.is_empty() {
        return Ok(Other::Library(functions));
    }
    match functions.left_out() {
        [] => Err(offers_nothing(names())),
        [first, ..] => Err(world(format!(
            "none of the functions that it exports can be a tool; `{}` cannot, since {}",
            first.function, first.why
        ))),
    }
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
            "it exports `{RESTART}` and does not import `checkpoint` of `longshore:tool/restart-points`: \
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
