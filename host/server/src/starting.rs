//! What a node serves from its start on: components of files and of the store. Nobody waits for a compiler before the
//! node answers; calls wait for the code that they need.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use longshore_catalog::component::{Component, Digest, Name};
use longshore_catalog::registry::Registry;
use longshore_catalog::store::StoreError;
use longshore_protocol::error::RpcError;
use longshore_tasks::store::StoreError as TaskStoreError;

use crate::call::CallError;
use crate::code::{Code, NoCode};
use crate::components::{Broken, Source};
use crate::loaded::{Loaded, ready};
use crate::presence::Presence;
use crate::reason::{NAME_COLLISION, Refusal, RunReason};
use crate::server::Server;

/// Components that are made ready at the same time; how many are compiled at once is the compiler's to say.
const AT_ONCE: usize = 4;

/// A component that comes as a file.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub name: Name,
    /// Where it was found.
    pub source: Source,
    /// What is in it.
    pub bytes: Arc<[u8]>,
}

/// A component that the store knows, and whose code is still to be made.
struct Cold {
    component: Component,
    code: Code,
}

type Examined = Result<(Component, Loaded), Refusal>;

/// A file with what was found out about it.
async fn examined(server: Server, file: File) -> (File, Examined) {
    let bytes = Arc::clone(&file.bytes);
    let examined = server.examine(file.name.clone(), bytes, file.source).await;
    (file, examined)
}

/// The one that somebody waits for, else the smallest.
fn next_of(cold: &mut Vec<Cold>) -> Option<Cold> {
    let (place, _) = cold
        .iter()
        .enumerate()
        .min_by_key(|(_, cold)| (!cold.code.is_wanted(), cold.component.size))?;
    Some(cold.swap_remove(place))
}

async fn warmed(server: Server, cold: Cold) {
    server.warm(cold).await;
}

/// Whether the store holds what was never put there, as far as that shows while a server starts.
#[must_use]
pub fn is_damage(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        matches!(cause.downcast_ref(), Some(StoreError::Corrupt(_)))
            || matches!(cause.downcast_ref(), Some(TaskStoreError::Corrupt(_)))
    })
}

impl Server {
    /// Refuses what can be refused by reading.
    ///
    /// # Errors
    ///
    /// The first reason to.
    pub async fn check(&self, bytes: Arc<[u8]>) -> Result<(), Refusal> {
        Ok(self.sandbox.check(bytes).await?)
    }

    /// The most bytes that a component may have.
    #[must_use]
    pub fn most_bytes(&self) -> u64 {
        self.sandbox.most_bytes() as u64
    }

    /// Serves files, in their order, and what the store holds. Files whose native code is kept are served when this
    /// returns, up to the first that is to be compiled; that one and those behind it follow while the node serves. Of
    /// what the store holds the tools are known and listed at once.
    pub async fn begin(&self, files: Vec<File>) -> Result<usize, StoreError> {
        self.read_grants().await?;
        let mut kept = Vec::with_capacity(files.len());
        for file in files {
            let is_new = {
                let mut of_files = self.of_files.lock();
                let is_new = !of_files.contains_key(&file.name);
                of_files.entry(file.name.clone()).or_insert(file.source);
                is_new
            };
            if is_new {
                kept.push(file);
            } else {
                let refusal = Refusal::new(
                    NAME_COLLISION,
                    format!(
                        "the command line brings a component {} as well: rename one of the files",
                        file.name
                    ),
                );
                self.break_one(file.name, refusal);
            }
        }
        self.starting.send_replace(kept.len());
        let mut files = kept.into_iter().peekable();
        while let Some(file) = files.next_if(|file| {
            let digest = Digest::of(&file.bytes);
            self.sandbox.is_kept(digest.as_str())
        }) {
            self.bring_in(file).await;
        }
        let cold = self.list_stored().await?;
        let stored = self
            .registry()
            .components()
            .filter(|entry| entry.payload.source == Source::Upload)
            .count();
        let rest: Vec<File> = files.collect();
        if !rest.is_empty() || !cold.is_empty() {
            tokio::spawn(self.clone().follow_up_start(rest, cold));
        }
        Ok(stored)
    }

    async fn follow_up_start(self, files: Vec<File>, cold: Vec<Cold>) {
        // Examined side by side and put in force in their order, so that it does not depend on a race who keeps a name.
        let files = async {
            let server = self.clone();
            let mut examined = pin!(
                stream::iter(files)
                    .map(move |file| examined(server.clone(), file))
                    .buffered(AT_ONCE)
            );
            while let Some((file, examined)) = examined.next().await {
                self.put_in_force(file, examined).await;
            }
        };
        let server = self.clone();
        let stored = stream::unfold(cold, async |mut cold| Some((next_of(&mut cold)?, cold)))
            .for_each_concurrent(AT_ONCE, move |cold| warmed(server.clone(), cold));
        tokio::join!(stored, files);
    }

    async fn bring_in(&self, file: File) {
        let (file, examined) = examined(self.clone(), file).await;
        self.put_in_force(file, examined).await;
    }

    async fn put_in_force(&self, file: File, examined: Examined) {
        let put = match examined {
            Ok((component, loaded)) => self.switch(component, loaded, &file.bytes).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = put {
            self.break_one(file.name, refusal);
        }
        self.starting.send_modify(|left| *left -= 1);
    }

    /// Puts a component of a file in force, in place of an older one of its name, and tells whoever listens.
    pub(crate) async fn switch(
        &self,
        component: Component,
        loaded: Loaded,
        bytes: &[u8],
    ) -> Result<(), Refusal> {
        let _alone = self.changing.lock().await;
        let name = component.name.clone();
        let registry = self.extended(&self.registry(), &component, loaded)?;
        // A task of it may be gone on with by a server that was started without its file.
        let kept = self.components.keep(component, bytes.to_vec()).await;
        kept.map_err(|error| {
            Refusal::new(
                "host",
                format!("{error}: see to the store and start the server again"),
            )
        })?;
        self.broken.lock().retain(|broken| broken.name != name);
        self.put_in_place(registry, &name);
        Ok(())
    }

    /// Keeps a component aside that cannot be served, with the reason.
    pub(crate) fn break_one(&self, name: Name, refusal: Refusal) {
        let mut broken = self.broken.lock();
        // Said once, however often it is tried.
        let is_known = |broken: &Broken| broken.name == name && broken.refusal == refusal;
        if !broken.iter().any(is_known) {
            tracing::error!(component = %name, reason = refusal.reason, refusal.message, "a component cannot be served");
        }
        broken.retain(|broken| broken.name != name);
        broken.push(Broken { name, refusal });
    }

    /// Lists what the store holds. What cannot be listed is kept aside and named, so that one damaged component does
    /// not keep a node from serving the others.
    async fn list_stored(&self) -> Result<Vec<Cold>, StoreError> {
        let _alone = self.changing.lock().await;
        let mut cold = Vec::new();
        for component in self.components.installed().await? {
            let component = component.under_its_name();
            let name = component.name.clone();
            if self.of_files.lock().contains_key(&name) {
                tracing::warn!(component = %name, "a file brings this component: the uploaded one is not served");
                continue;
            }
            match self.listed(component) {
                Ok((registry, listed)) => {
                    self.registry_store(registry);
                    cold.push(listed);
                }
                Err(refusal) => self.break_one(name, refusal),
            }
        }
        Ok(cold)
    }

    fn listed(&self, component: Component) -> Result<(Registry<Loaded>, Cold), Refusal> {
        let code = Code::pending();
        let hold = self.holds.hold(&component.digest);
        let loaded = ready(code.clone(), &component, Source::Upload, hold)?;
        let registry = self.extended(&self.registry(), &component, loaded)?;
        Ok((registry, Cold { component, code }))
    }

    /// Serves a component of the store that was kept aside, if what kept it there is gone. Only whoever is alone in
    /// changing components calls it.
    pub(crate) async fn serve_again(&self, name: &Name) -> Result<(), StoreError> {
        if self.of_files.lock().contains_key(name) {
            return Ok(());
        }
        let mut stored = self.components.installed().await?.into_iter();
        let Some(component) = stored.find(|component| component.name == *name) else {
            return Ok(());
        };
        match self.listed(component) {
            Ok((registry, cold)) => {
                self.broken.lock().retain(|broken| broken.name != *name);
                self.put_in_place(registry, name);
                tokio::spawn(warmed(self.clone(), cold));
            }
            Err(refusal) => self.break_one(name.clone(), refusal),
        }
        Ok(())
    }

    /// Makes the code of a component of the store.
    async fn warm(&self, cold: Cold) {
        let Cold { component, code } = cold;
        let mut kept = None;
        let made = match self.kept_bytes(&component.digest).await {
            Ok(Some(bytes)) => {
                kept = Some(Arc::clone(&bytes));
                let digest = component.digest.as_str();
                let prepared = self.sandbox.prepare(digest, bytes).await;
                prepared.map_err(Refusal::from)
            }
            Ok(None) => Err(Refusal::new(
                "host",
                "the store has its name but not its bytes: upload it again",
            )),
            Err(error @ StoreError::Corrupt(_)) => Err(Refusal::new("damaged", error.to_string())),
            Err(error) => Err(Refusal::new(
                "host",
                format!("{error}: see to the store and start the server again"),
            )),
        };
        let refusal = made.as_ref().err().cloned();
        // A version that did not know resources and prompts, or manifests, has kept it without asking for them.
        let is_unasked = made.as_ref().is_ok_and(|prepared| {
            (component.library.is_empty() && prepared.has_library())
                || component.manifest.as_deref() != prepared.manifest()
        });
        let prepared_manifest = made
            .as_ref()
            .ok()
            .and_then(|prepared| prepared.manifest().map(str::to_owned));
        code.settle(made);
        if let Some(bytes) = kept.filter(|_| is_unasked) {
            let is_bounded_anew = component.manifest.as_deref() != prepared_manifest.as_deref();
            self.examine_again(&component, bytes, is_bounded_anew).await;
            return;
        }
        let Some(refusal) = refusal else { return };
        let _alone = self.changing.lock().await;
        let is_in_force = self
            .registry()
            .component(&component.name)
            .is_some_and(|entry| entry.component.digest == component.digest);
        // It may have been replaced or removed while it was tried.
        if is_in_force {
            let without = self.registry().without(&component.name);
            self.put_in_place(without, &component.name);
            self.break_one(component.name, refusal);
        }
    }

    /// Asks a component of the store again for all that it lists. If that fails it is served as it was kept, unless it
    /// has bounds that were not kept.
    async fn examine_again(&self, component: &Component, bytes: Arc<[u8]>, is_bounded_anew: bool) {
        let name = component.name.clone();
        let digest = component.digest.clone();
        let examined = self
            .examine_bytes(name.clone(), digest, Arc::clone(&bytes), Source::Upload)
            .await;
        let _alone = self.changing.lock().await;
        let is_in_force = self
            .registry()
            .component(&name)
            .is_some_and(|entry| entry.component.digest == component.digest);
        if !is_in_force {
            return;
        }
        let extended = examined.and_then(|(component, loaded)| {
            let registry = self.extended(&self.registry(), &component, loaded)?;
            Ok((component, registry))
        });
        match extended {
            Ok((component, registry)) => {
                let installed = self.components.install(component, bytes.to_vec()).await;
                if let Err(error) = installed {
                    tracing::warn!(%error, "what a component lists could not be kept; it is asked again at the next start");
                }
                self.put_in_place(registry, &name);
            }
            Err(refusal) if is_bounded_anew => {
                let without = self.registry().without(&name);
                self.put_in_place(without, &name);
                self.break_one(name, refusal);
            }
            Err(refusal) => {
                tracing::warn!(component = %name, reason = refusal.reason, refusal.message, "what a component lists beside its tools is not served");
            }
        }
    }

    /// Components that are not ready to run yet.
    #[must_use]
    pub fn preparing(&self) -> usize {
        let pending = self
            .registry()
            .components()
            .filter(|entry| entry.payload.code.is_pending())
            .count();
        *self.starting.borrow() + pending
    }

    /// A registry that has what is looked for, if there is one: while components of files are still examined it may
    /// yet come.
    pub(crate) async fn registry_where(
        &self,
        caller: &Presence,
        has: impl Fn(&Registry<Loaded>) -> bool,
    ) -> Result<Arc<Registry<Loaded>>, CallError> {
        let registry = self.registry();
        if has(&registry) {
            return Ok(registry);
        }
        let mut starting = self.starting.subscribe();
        let most = tokio::time::sleep(self.patience());
        tokio::pin!(most);
        loop {
            // In this order: what is put in force just now is seen at the next turn.
            let is_whole = *starting.borrow_and_update() == 0;
            let registry = self.registry();
            if is_whole || has(&registry) {
                return Ok(registry);
            }
            tokio::select! {
                // It is never closed while the node is there.
                _changed = starting.changed() => {}
                () = &mut most => return Err(CallError::NoRoom(RunReason::Busy)),
                () = caller.gone() => return Err(CallError::NoRoom(RunReason::Abandoned)),
            }
        }
    }

    /// Returns once all that is served from the start on is known, or after that time.
    pub(crate) async fn until_known(&self, most: Duration) {
        let mut starting = self.starting.subscribe();
        let known = starting.wait_for(|starting| *starting == 0);
        let _what_is_known_then = tokio::time::timeout(most, known).await;
    }

    /// The code of a component, for a call.
    pub(crate) async fn code_of(
        &self,
        loaded: &Loaded,
        caller: &Presence,
    ) -> Result<longshore_sandbox::sandbox::Prepared, CallError> {
        let got = loaded.code.get(self.patience(), caller).await;
        got.map_err(|missing| match missing {
            NoCode::NotYet(reason) => CallError::NoRoom(reason),
            NoCode::Refused(Refusal { reason, message }) => CallError::Refused(
                RpcError::internal(format!("the tool's component cannot be loaded: {message}"))
                    .with_data(format!("{{\"reason\":\"{reason}\"}}")),
            ),
        })
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.settings.compile_wait_ms)
    }
}
