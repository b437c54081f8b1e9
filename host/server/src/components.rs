//! Uploads: from bytes to tools that can be called, and away again.

use std::sync::{Arc, Weak};

use longshore_catalog::component::{Component, Digest, Name};
use longshore_catalog::library;
use longshore_catalog::registry::{Entry, Registry};
use longshore_catalog::store::{Installed, StoreError};
use longshore_protocol::notification::Family;
use serde_json::Value;

use crate::clock;
use crate::code::Code;
use crate::http::admin;
use crate::loaded::{Loaded, offered, ready, shape_of};
use crate::reason::Refusal;
use crate::server::Server;

/// Why no component of a node can be replayed that was told not to record.
const NOT_RECORDED: &str = "this server does not record what a run sees (setting `durable`), so a run that dies with its process is not resumed";

/// Where a component comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// It was uploaded.
    Upload,
    /// It came with the command line.
    CommandLine,
    /// It lies in the components directory.
    Folder,
}

impl Source {
    /// The word for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::CommandLine => "command-line",
            Self::Folder => "directory",
        }
    }

    /// Whether it is there for as long as its file is, and not for uploads.
    pub(crate) fn is_static(self) -> bool {
        match self {
            Self::Upload => false,
            Self::CommandLine | Self::Folder => true,
        }
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
    /// The name belongs to a component of a file.
    #[error(
        "{0} comes from the command line of this server or from its components directory: take that file away, or use another name"
    )]
    Static(Name),
    /// The name is that of no component.
    #[error("no component is named {0}")]
    Unknown(Name),
    /// The store is in trouble.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a component that a task began with cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PinnedError {
    /// It cannot be loaded.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The store does not have what the task began with.
    #[error("{0}")]
    Damaged(String),
    /// The store is in trouble.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for PinnedError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Corrupt(_) => Self::Damaged(error.to_string()),
            error @ StoreError::Unavailable(_) => Self::Store(error),
        }
    }
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
        if let Some(receipt) = self.unchanged(&name, &digest) {
            return Ok(receipt);
        }
        let (component, loaded) = self
            .examine(name, Arc::from(bytes.as_slice()), Source::Upload)
            .await?;
        let _alone = self.changing.lock().await;
        self.refuse_static(&component.name)?;
        // Somebody may have uploaded the same meanwhile.
        if let Some(receipt) = self.unchanged(&component.name, &component.digest) {
            return Ok(receipt);
        }
        let extended = self.extended(&self.registry(), &component, loaded);
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
        self.put_in_place(registry, &component.name);
        let warnings = self.warnings(&component);
        Ok(Receipt {
            component,
            installed,
            warnings,
        })
    }

    /// What an upload would be, if it can be accepted, with what it would be granted under that name. Nothing changes.
    pub async fn look_at(&self, name: Name, bytes: Vec<u8>) -> Result<Value, ChangeError> {
        self.refuse_static(&name)?;
        let examined = self.examine(name, Arc::from(bytes), Source::Upload).await;
        let (component, payload) = examined?;
        let digest = component.digest.clone();
        let would_fit = self.would_fit(&component, &payload);
        let entry = Entry { component, payload };
        let looked = would_fit.map(|()| admin::describe(self, &entry));
        drop(entry);
        self.let_go(&digest).await;
        Ok(looked?)
    }

    /// Lets these bytes be compiled again, should they have been refused for what that took.
    pub fn forgive(&self, bytes: &[u8]) {
        self.sandbox.forgive(Digest::of(bytes).as_str());
    }

    /// What an upload did that changes nothing.
    fn unchanged(&self, name: &Name, digest: &Digest) -> Option<Receipt> {
        let registry = self.registry();
        let component = &registry.component(name)?.component;
        (component.digest == *digest).then(|| Receipt {
            component: component.clone(),
            installed: Installed::Unchanged,
            warnings: self.warnings(component),
        })
    }

    fn warnings(&self, component: &Component) -> Vec<String> {
        let registry = self.registry();
        registry
            .component(&component.name)
            .map_or_else(Vec::new, |entry| self.volatile(entry))
    }

    /// Serves a component for as long as this process lives.
    pub async fn install_static(
        &self,
        name: Name,
        bytes: Vec<u8>,
    ) -> Result<Component, ChangeError> {
        let source = Source::CommandLine;
        let bytes: Arc<[u8]> = Arc::from(bytes);
        let (component, loaded) = self.examine(name, Arc::clone(&bytes), source).await?;
        self.of_files.lock().insert(component.name.clone(), source);
        self.switch(component.clone(), loaded, &bytes).await?;
        Ok(component)
    }

    /// Takes a name and its tools away. Calls that run go on to their end.
    pub async fn remove(&self, name: Name) -> Result<(), ChangeError> {
        self.refuse_static(&name)?;
        let _alone = self.changing.lock().await;
        let was_there = self.components.remove(name.clone()).await?;
        if was_there {
            self.grants.lock().remove(&name);
        }
        let was_broken = {
            let mut broken = self.broken.lock();
            let before = broken.len();
            broken.retain(|broken| broken.name != name);
            broken.len() != before
        };
        if self.registry().component(&name).is_some() {
            self.put_in_place(self.registry().without(&name), &name);
        }
        if was_there || was_broken {
            Ok(())
        } else {
            Err(ChangeError::Unknown(name))
        }
    }

    /// The component of that digest, whether or not a name points at it: a task keeps the one that it
    /// began with.
    pub(crate) async fn pinned(&self, digest: &str) -> Result<Arc<Entry<Loaded>>, PinnedError> {
        let registry = self.registry();
        if let Some(entry) = registry
            .components()
            .find(|entry| entry.component.digest.as_str() == digest)
        {
            return Ok(Arc::clone(entry));
        }
        if let Some(entry) = self.unnamed.lock().get(digest).and_then(Weak::upgrade) {
            return Ok(entry);
        }
        let parsed = Digest::from_stored(digest.to_owned());
        let bytes = self
            .kept_bytes(&parsed)
            .await?
            .ok_or_else(|| PinnedError::Damaged(format!("the store has no component {digest}")))?;
        let name: Name = "unnamed".parse().expect("this is a name");
        let (component, payload) = self
            .examine_bytes(name, parsed, bytes, Source::Upload)
            .await
            .map_err(PinnedError::Refused)?;
        let entry = Arc::new(Entry { component, payload });
        let mut unnamed = self.unnamed.lock();
        unnamed.retain(|_, entry| entry.strong_count() > 0);
        unnamed.insert(digest.to_owned(), Arc::downgrade(&entry));
        Ok(entry)
    }

    /// What the store keeps of a component, if it is what was put there: other bytes would be run under the name of these.
    pub(crate) async fn kept_bytes(
        &self,
        digest: &Digest,
    ) -> Result<Option<Arc<[u8]>>, StoreError> {
        let Some(bytes) = self.components.bytes(digest.clone()).await? else {
            return Ok(None);
        };
        let expected = digest.clone();
        let checked = tokio::task::spawn_blocking(move || {
            (Digest::of(&bytes) == expected).then(|| Arc::<[u8]>::from(bytes))
        });
        match checked.await {
            Ok(Some(bytes)) => Ok(Some(bytes)),
            Ok(None) => Err(StoreError::Corrupt(format!(
                "the bytes of the component {digest} are not those that were uploaded: upload it again"
            ))),
            Err(_) => Err(StoreError::Unavailable("the server is stopping".to_owned())),
        }
    }

    /// Everything that can be found out about an upload without changing anything.
    pub(crate) async fn examine(
        &self,
        name: Name,
        bytes: Arc<[u8]>,
        source: Source,
    ) -> Result<(Component, Loaded), Refusal> {
        let digest = Digest::of(&bytes);
        let examined = self
            .examine_bytes(name, digest.clone(), bytes, source)
            .await;
        if examined.is_err()
            && let Err(error) = self.sandbox.forget(digest.as_str()).await
        {
            tracing::warn!(%error, %digest, "native code of a refused component could not be deleted");
        }
        examined
    }

    /// Why an upload is not installed, once what was made for it is let go of.
    async fn drop_upload(&self, digest: &Digest, error: ChangeError) -> ChangeError {
        self.let_go(digest).await;
        error
    }

    /// Lets go of what was made for an upload that is not installed, unless somebody else needs it.
    async fn let_go(&self, digest: &Digest) {
        let is_needed = self.holds.has(digest);
        if !is_needed && let Err(error) = self.sandbox.forget(digest.as_str()).await {
            tracing::warn!(%error, %digest, "native code of a component that is not installed could not be deleted");
        }
    }

    /// The same of a component of the store, whose native code stays whatever comes of it.
    pub(crate) async fn examine_bytes(
        &self,
        name: Name,
        digest: Digest,
        bytes: Arc<[u8]>,
        source: Source,
    ) -> Result<(Component, Loaded), Refusal> {
        let size = bytes.len() as u64;
        let prepared = self.sandbox.prepare(digest.as_str(), bytes).await?;
        let offer = self
            .sandbox
            .list(&prepared, name.as_str(), &self.settings.limits);
        let offer = offer.await?;
        let (shape, left_out) = shape_of(&offer);
        let (tools, library) = library::accept(offered(offer))?;
        let component = Component {
            name,
            digest,
            size,
            imports: prepared.imports().to_vec(),
            manifest: prepared.manifest().map(str::to_owned),
            tools,
            shape,
            left_out,
            library,
            volatile: if self.settings.durable {
                Vec::new()
            } else {
                vec![NOT_RECORDED.to_owned()]
            },
            installed_at_ms: clock::now().0,
        };
        let hold = self.holds.hold(&component.digest);
        let loaded = ready(Code::ready(prepared), &component, source, hold)?;
        Ok((component, loaded))
    }

    fn refuse_static(&self, name: &Name) -> Result<(), ChangeError> {
        if self.of_files.lock().contains_key(name) {
            Err(ChangeError::Static(name.clone()))
        } else {
            Ok(())
        }
    }

    pub(crate) fn registry_store(&self, registry: Registry<Loaded>) {
        self.registry.store(Arc::new(registry));
    }

    /// Puts a registry in force that differs by the component of that name, and tells of the lists that are others
    /// now.
    pub(crate) fn put_in_place(&self, registry: Registry<Loaded>, name: &Name) {
        let before = self.registry().component(name).cloned();
        let after = registry.component(name).cloned();
        self.registry_store(registry);
        // Tasks may have waited for just this one.
        self.lookout.try_all_again();
        let before = before.as_ref().map(|entry| &entry.component);
        let after = after.as_ref().map(|entry| &entry.component);
        for family in changed_lists(before, after) {
            self.bus.list_changed(family);
        }
        if before.map(|component| &component.digest) != after.map(|component| &component.digest) {
            // Another version may hold something else under the same names.
            self.bus.contents_changed(name.as_str());
        }
    }
}

/// The lists in which these two differ; who is not there lists nothing.
fn changed_lists(before: Option<&Component>, after: Option<&Component>) -> Vec<Family> {
    let nothing = library::Library::default();
    let (old_tools, old) = before.map_or((&[][..], &nothing), |it| (&it.tools, &it.library));
    let (new_tools, new) = after.map_or((&[][..], &nothing), |it| (&it.tools, &it.library));
    let differs = |family: &Family| match family {
        Family::Tools => old_tools != new_tools,
        Family::Prompts => old.prompts != new.prompts,
        Family::Resources => old.resources != new.resources || old.templates != new.templates,
    };
    Family::ALL.into_iter().filter(differs).collect()
}
