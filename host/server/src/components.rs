//! Uploads: from bytes to tools that can be called, and away again.

use std::collections::HashMap;
use std::sync::Arc;

use longshore_catalog::component::{Component, Digest, Name};
use longshore_catalog::header::{self, HeaderParameter};
use longshore_catalog::registry::Registry;
use longshore_catalog::schema::Compiled;
use longshore_catalog::store::{Installed, StoreError};
use longshore_catalog::tool::{Offered, TaskMode, Tool, accept};
use longshore_protocol::tool::Tool as Descriptor;
use longshore_sandbox::sandbox::{OfferedMode, OfferedTool, Prepared};

use crate::clock;
use crate::reason::Refusal;
use crate::run::Turns;
use crate::server::Server;

/// Why no component can be replayed yet: it runs on a WASI whose answers are not recorded.
const NOT_RECORDED: &str = "this version does not record what a run sees, so a run that dies with its process is not resumed";

/// What this node holds ready for a component.
pub struct Loaded {
    pub(crate) prepared: Prepared,
    /// Whether it came with the command line, and not through an upload.
    pub(crate) is_static: bool,
    tools: HashMap<String, Ready>,
}

/// What is held ready for a tool.
pub(crate) struct Ready {
    pub(crate) input: Compiled,
    pub(crate) output: Option<Arc<Compiled>>,
    pub(crate) descriptor: String,
    /// Arguments that clients repeat as headers.
    pub(crate) headers: Vec<HeaderParameter>,
    pub(crate) turns: Turns,
}

impl Loaded {
    pub(crate) fn tool(&self, name: &str) -> Option<&Ready> {
        self.tools.get(name)
    }
}

/// A component that the store holds and this node cannot load.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Its name.
    pub name: Name,
    /// Why.
    pub refusal: Refusal,
}

/// What an upload did.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The component as it is now.
    pub component: Component,
    /// What changed.
    pub installed: Installed,
    /// What its author should know.
    pub warnings: Vec<String>,
}

/// Why an upload or a removal did nothing.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The component cannot be accepted.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The name belongs to a component of the command line.
    #[error(
        "{0} comes from the command line of this server: start it without that file, or use another name"
    )]
    Static(Name),
    /// The name is that of no component.
    #[error("no component is named {0}")]
    Unknown(Name),
    /// The store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<Refusal> for ChangeError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Server {
    /// Points a name at these bytes, if they are a component that can be accepted. Calls that run keep
    /// what they began with.
    pub async fn install(&self, name: Name, bytes: Vec<u8>) -> Result<Receipt, ChangeError> {
        self.refuse_static(&name)?;
        let digest = Digest::of(&bytes);
        if let Some(entry) = self
            .registry()
            .component(&name)
            .filter(|entry| entry.component.digest == digest)
        {
            let component = entry.component.clone();
            let warnings = component.volatile.clone();
            return Ok(Receipt {
                component,
                installed: Installed::Unchanged,
                warnings,
            });
        }
        let (component, loaded) = self
            .examine(name, Arc::from(bytes.as_slice()), false)
            .await?;
        let _alone = self.changing.lock().await;
        self.refuse_static(&component.name)?;
        let extended = extended(&self.registry(), &component, loaded);
        let installed = match &extended {
            Ok(_) => self.components.install(component.clone(), bytes).await,
            Err(refusal) => {
                return Err(self
                    .drop_upload(&component.digest, refusal.clone().into())
                    .await);
            }
        };
        let installed = match installed {
            Ok(installed) => installed,
            Err(error) => return Err(self.drop_upload(&component.digest, error.into()).await),
        };
        let registry = extended?;
        self.broken
            .lock()
            .retain(|broken| broken.name != component.name);
        self.registry_store(registry);
        self.bus.tools_changed();
        let warnings = component.volatile.clone();
        Ok(Receipt {
            component,
            installed,
            warnings,
        })
    }

    /// Serves a component for as long as this process lives.
    pub async fn install_static(
        &self,
        name: Name,
        bytes: Vec<u8>,
    ) -> Result<Component, ChangeError> {
        let (component, loaded) = self.examine(name, Arc::from(bytes), true).await?;
        let _alone = self.changing.lock().await;
        let registry = extended(&self.registry(), &component, loaded)?;
        self.registry_store(registry);
        Ok(component)
    }

    /// Takes a name and its tools away. Calls that run go on to their end.
    pub async fn remove(&self, name: Name) -> Result<(), ChangeError> {
        self.refuse_static(&name)?;
        let _alone = self.changing.lock().await;
        let was_there = self.components.remove(name.clone()).await?;
        let was_broken = {
            let mut broken = self.broken.lock();
            let before = broken.len();
            broken.retain(|broken| broken.name != name);
            broken.len() != before
        };
        if self.registry().component(&name).is_some() {
            self.registry_store(self.registry().without(&name));
            self.bus.tools_changed();
        }
        if was_there || was_broken {
            Ok(())
        } else {
            Err(ChangeError::Unknown(name))
        }
    }

    /// Loads what the store holds. What cannot be loaded is kept aside and named, so that one damaged
    /// component does not keep a node from serving the others.
    pub async fn load(&self) -> Result<usize, StoreError> {
        let _alone = self.changing.lock().await;
        let mut loaded_count = 0;
        for component in self.components.installed().await? {
            let name = component.name.clone();
            if self.registry().component(&name).is_some() {
                tracing::warn!(component = %name, "the command line brings this component: the uploaded one is not served");
                continue;
            }
            match self.load_one(component).await? {
                Ok(()) => loaded_count += 1,
                Err(refusal) => {
                    tracing::error!(component = %name, reason = refusal.reason, refusal.message, "a component cannot be loaded");
                    self.broken.lock().push(Broken { name, refusal });
                }
            }
        }
        Ok(loaded_count)
    }

    async fn load_one(&self, component: Component) -> Result<Result<(), Refusal>, StoreError> {
        let Some(bytes) = self.components.bytes(component.digest.clone()).await? else {
            return Ok(Err(Refusal::new(
                "host",
                "the store has its name but not its bytes: upload it again",
            )));
        };
        let loaded = match self
            .sandbox
            .prepare(component.digest.as_str(), Arc::from(bytes))
            .await
        {
            Ok(prepared) => ready(prepared, &component.tools, false),
            Err(refusal) => Err(refusal.into()),
        };
        Ok(loaded.and_then(|loaded| {
            self.registry_store(extended(&self.registry(), &component, loaded)?);
            Ok(())
        }))
    }

    /// Everything that can be found out about an upload without changing anything.
    async fn examine(
        &self,
        name: Name,
        bytes: Arc<[u8]>,
        is_static: bool,
    ) -> Result<(Component, Loaded), Refusal> {
        let digest = Digest::of(&bytes);
        let examined = self
            .examine_bytes(name, digest.clone(), bytes, is_static)
            .await;
        if examined.is_err()
            && let Err(error) = self.sandbox.forget(digest.as_str()).await
        {
            tracing::warn!(%error, %digest, "native code of a refused component could not be deleted");
        }
        examined
    }

    /// Lets go of what was made for an upload that is not installed, unless another name has it.
    async fn drop_upload(&self, digest: &Digest, error: ChangeError) -> ChangeError {
        let is_served = self
            .registry()
            .components()
            .any(|entry| entry.component.digest == *digest);
        if !is_served && let Err(error) = self.sandbox.forget(digest.as_str()).await {
            tracing::warn!(%error, %digest, "native code of a refused component could not be deleted");
        }
        error
    }

    async fn examine_bytes(
        &self,
        name: Name,
        digest: Digest,
        bytes: Arc<[u8]>,
        is_static: bool,
    ) -> Result<(Component, Loaded), Refusal> {
        let size = bytes.len() as u64;
        let prepared = self.sandbox.prepare(digest.as_str(), bytes).await?;
        let offered = self.sandbox.list_tools(&prepared).await?;
        let tools = accept(offered.into_iter().map(offer).collect())?;
        let component = Component {
            name,
            digest,
            size,
            imports: prepared.imports().to_vec(),
            tools,
            volatile: vec![NOT_RECORDED.to_owned()],
            installed_at_ms: clock::now().0,
        };
        let loaded = ready(prepared, &component.tools, is_static)?;
        Ok((component, loaded))
    }

    fn refuse_static(&self, name: &Name) -> Result<(), ChangeError> {
        let registry = self.registry();
        let is_static = registry
            .component(name)
            .is_some_and(|entry| entry.payload.is_static);
        if is_static {
            Err(ChangeError::Static(name.clone()))
        } else {
            Ok(())
        }
    }

    fn registry_store(&self, registry: Registry<Loaded>) {
        self.registry.store(Arc::new(registry));
    }
}

fn extended(
    registry: &Registry<Loaded>,
    component: &Component,
    loaded: Loaded,
) -> Result<Registry<Loaded>, Refusal> {
    registry
        .with(component.clone(), loaded)
        .map_err(|clash| Refusal::new("name-collision", clash.to_string()))
}

fn ready(prepared: Prepared, tools: &[Tool], is_static: bool) -> Result<Loaded, Refusal> {
    let schema = |tool: &Tool, text: &str| {
        Compiled::compile(text)
            .map_err(|fault| Refusal::new("schema", format!("tool {:?}: {fault}", tool.name)))
    };
    let mut ready = HashMap::with_capacity(tools.len());
    for tool in tools {
        let descriptor = Descriptor {
            name: &tool.name,
            title: tool.title.as_deref(),
            description: &tool.description,
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_deref(),
            extra: tool.extra.as_deref(),
        };
        let descriptor = descriptor.descriptor().map_err(|fault| {
            Refusal::new("list-tools", format!("tool {:?}: {fault}", tool.name))
        })?;
        let input = schema(tool, &tool.input_schema)?;
        let headers = header::parameters(&tool.input_schema).map_err(|fault| {
            Refusal::new("x-mcp-header", format!("tool {:?}: {fault}", tool.name))
        })?;
        let output = tool
            .output_schema
            .as_ref()
            .map(|text| schema(tool, text))
            .transpose()?
            .map(Arc::new);
        ready.insert(
            tool.name.clone(),
            Ready {
                input,
                output,
                descriptor,
                headers,
                turns: Turns::default(),
            },
        );
    }
    Ok(Loaded {
        prepared,
        is_static,
        tools: ready,
    })
}

fn offer(tool: OfferedTool) -> Offered {
    let OfferedTool {
        name,
        title,
        description,
        input_schema,
        output_schema,
        task_mode,
        requires,
        extra,
    } = tool;
    let task_mode = match task_mode {
        OfferedMode::Never => TaskMode::Never,
        OfferedMode::OnDetach => TaskMode::OnDetach,
        OfferedMode::Auto => TaskMode::Auto,
        OfferedMode::Always => TaskMode::Always,
    };
    Offered {
        name,
        title,
        description,
        input_schema,
        output_schema,
        task_mode,
        requires,
        extra,
    }
}
