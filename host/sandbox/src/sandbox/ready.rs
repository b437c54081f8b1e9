//! Components made ready to run: checked, compiled or found compiled, and linked.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use longshore_policy::manifest::Manifest;
use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;

use super::{Sandbox, WasiKind, host};
use crate::artifact::{Artifact, Digest};
use crate::link::{self, Asking, Fitted, Links};
use crate::pool::Each;
use crate::precheck::{self, Facts};
use crate::refusal::Refusal;
use crate::typed::docs::Docs;

/// A component that is being made ready to be linked.
pub(super) type Flight = BoxFuture<'static, Result<Each<Component>, Refusal>>;

/// A component that can run: compiled, and known to fit.
#[derive(Clone)]
pub struct Prepared(pub(super) Arc<Ready>);

pub(super) struct Ready {
    pub(super) component: Fitted,
    /// The same for a run that is recorded, where that is not the same.
    pub(super) recorded: Option<Fitted>,
    native: Each<Component>,
    /// Linked to the host's own file system, once a run has some of it.
    on_host: OnceLock<Fitted>,
    imports: Vec<String>,
    manifest: Option<String>,
    docs: Docs,
}

impl Ready {
    /// What is to be known of it if it lists nothing by itself.
    pub(super) fn asking<'a>(&'a self, name: &'a str) -> Asking<'a> {
        let manifest = self.manifest.as_deref().map(Manifest::of_toml);
        Asking {
            name,
            docs: &self.docs,
            usage: manifest.is_some_and(|manifest| manifest.is_ok_and(|manifest| manifest.usage)),
        }
    }

    /// The component, linked to the WASI of its sandbox or to the host's.
    pub(super) fn fitted(&self, is_usual: bool) -> Result<&Fitted, Refusal> {
        if is_usual {
            return Ok(&self.component);
        }
        let missing = || host("it is not linked to the host's files".into());
        self.on_host.get().ok_or_else(missing)
    }
}

impl Prepared {
    /// Whether it has resources or prompts.
    #[must_use]
    pub fn has_library(&self) -> bool {
        self.0.component.own.has_library()
    }

    /// What it imports, by name. To import is not to be allowed.
    #[must_use]
    pub fn imports(&self) -> &[String] {
        &self.0.imports
    }

    /// Its manifest, if it has one: a text that can be read.
    #[must_use]
    pub fn manifest(&self) -> Option<&str> {
        self.0.manifest.as_deref()
    }
}

impl Sandbox {
    /// Makes an upload ready to run: checked, compiled or found compiled, and linked. The digest is
    /// `sha256:` and the hexadecimal SHA-256 of the bytes.
    ///
    /// # Errors
    ///
    /// The first reason not to.
    pub async fn prepare(&self, digest: &str, bytes: Arc<[u8]>) -> Result<Prepared, Refusal> {
        let (computed, facts) = self.read(Arc::clone(&bytes)).await?;
        // Kept native code is found by this name, so it must be that of these bytes.
        if !is_digest(digest, &computed) {
            return Err(host(format!(
                "{digest} is not the digest of the bytes that came with it"
            )));
        }
        let component = self.flight(computed, bytes).await?;
        self.fit(&component, facts)
    }

    /// Refuses what can be refused without compiling.
    ///
    /// # Errors
    ///
    /// The first reason to.
    pub async fn check(&self, bytes: Arc<[u8]>) -> Result<(), Refusal> {
        self.read(bytes).await.map(drop)
    }

    async fn read(&self, bytes: Arc<[u8]>) -> Result<(Digest, Facts), Refusal> {
        let bounds = self.0.bounds.clone();
        blocking(move || {
            let facts = precheck::check(&bytes, &bounds)?;
            link::names_fit(&facts)?;
            Ok((Sha256::digest(&bytes).into(), facts))
        })
        .await?
    }

    /// The most bytes that a component may have.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.0.bounds.bytes
    }

    /// Whether the native code of a digest is kept, so that it is there at once.
    #[must_use]
    pub fn is_kept(&self, digest: &str) -> bool {
        let engine = self.0.room.engines.own();
        parse_digest(digest).is_some_and(|digest| self.0.artifacts.has(engine, &digest))
    }

    /// Lets a component be compiled again that was refused for what compiling it took.
    pub fn forgive(&self, digest: &str) {
        if let Some(digest) = parse_digest(digest) {
            self.0.memory.forgive(self.0.room.engines.own(), &digest);
        }
    }

    /// The component of that digest, found or compiled: once, however many ask for it meanwhile. It goes on for as long
    /// as one of them waits.
    fn flight(&self, digest: Digest, bytes: Arc<[u8]>) -> Shared<Flight> {
        let mut flights = self.0.flights.lock();
        if let Some(flight) = flights.get(&digest).and_then(WeakShared::upgrade) {
            return flight;
        }
        flights.retain(|_, flight| flight.upgrade().is_some());
        let sandbox = self.clone();
        let flight = async move {
            match sandbox.kept(digest).await? {
                Some(component) => Ok(component),
                None => sandbox.compile(digest, bytes).await,
            }
        };
        let flight = flight.boxed().shared();
        if let Some(weak) = flight.downgrade() {
            flights.insert(digest, weak);
        }
        flight
    }

    /// Deletes what is kept of a component that nothing needs.
    ///
    /// # Errors
    ///
    /// If its file cannot be deleted.
    pub async fn forget(&self, digest: &str) -> anyhow::Result<()> {
        let digest = parse_digest(digest).context("not a digest")?;
        let artifacts = Arc::clone(&self.0.artifacts);
        tokio::task::spawn_blocking(move || artifacts.forget(&digest)).await??;
        Ok(())
    }

    async fn kept(&self, digest: Digest) -> Result<Option<Each<Component>>, Refusal> {
        let engines = self.0.room.engines.clone();
        let artifacts = Arc::clone(&self.0.artifacts);
        blocking(move || {
            artifacts.load(engines.own(), &digest, |artifact| {
                engines.instate(&artifacts, artifact)
            })
        })
        .await
    }

    async fn compile(&self, digest: Digest, bytes: Arc<[u8]>) -> Result<Each<Component>, Refusal> {
        let engines = self.0.room.engines.clone();
        let memory = Arc::clone(&self.0.memory);
        let recall = blocking({
            let (engines, memory) = (engines.clone(), Arc::clone(&memory));
            move || memory.recall(engines.own(), &digest)
        });
        if let Some(refusal) = recall.await? {
            return Err(refusal);
        }
        self.0.compiles.fetch_add(1, Ordering::Relaxed);
        let artifact: Artifact = match self.0.compiler.compile(bytes).await {
            Ok(artifact) => artifact,
            Err(refusal) => {
                let noted = refusal.clone();
                blocking(move || memory.note(engines.own(), &digest, &noted)).await?;
                return Err(refusal);
            }
        };
        let artifacts = Arc::clone(&self.0.artifacts);
        blocking(move || {
            if let Err(error) = artifacts.keep(engines.own(), &digest, &artifact) {
                tracing::warn!(%error, "native code is not kept; it will be compiled again");
            }
            engines
                .instate(&artifacts, &artifact)
                .map_err(|error| host(format!("loading native code: {error:#}")))
        })
        .await?
    }

    /// A component that is compiled in this very process, as only what is ours may be.
    #[cfg(test)]
    pub(crate) fn fit_here(&self, bytes: &[u8]) -> wasmtime::Result<Result<Prepared, Refusal>> {
        let engines = &self.0.room.engines;
        let artifact = Artifact::compiled(engines.own().precompile_component(bytes)?);
        let component = engines.instate(&self.0.artifacts, &artifact)?;
        let facts = precheck::check(bytes, &self.0.bounds).unwrap_or_default();
        Ok(self.fit(&component, facts))
    }

    fn fit(&self, component: &Each<Component>, facts: Facts) -> Result<Prepared, Refusal> {
        let imports = link::imports(&component.own);
        let recorded = self.0.recorded.as_ref();
        let recorded = recorded.map(|links| links.fit(component)).transpose()?;
        Ok(Prepared(Arc::new(Ready {
            component: self.0.links.fit(component)?,
            recorded,
            native: component.clone(),
            on_host: OnceLock::new(),
            imports,
            manifest: facts.manifest,
            docs: facts.docs,
        })))
    }

    /// Links a component to a WASI that is not the usual one here, if it is not yet.
    pub(super) fn link(&self, prepared: &Prepared, wasi: WasiKind) -> Result<(), Refusal> {
        let ready = &prepared.0;
        if wasi == self.0.room.wasi || ready.on_host.get().is_some() {
            return Ok(());
        }
        let links = match self.0.host_links.get() {
            Some(links) => links,
            None => {
                let links = Links::new(&self.0.room.engines, wasi)
                    .map_err(|error| host(format!("linking the host's files: {error:#}")))?;
                self.0.host_links.get_or_init(|| links)
            }
        };
        let fitted = links.fit(&ready.native)?;
        ready.on_host.get_or_init(|| fitted);
        Ok(())
    }
}

/// Reading, hashing and mapping files have threads of their own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| host(format!("preparing a component: {error}")))
}

fn is_digest(text: &str, digest: &Digest) -> bool {
    parse_digest(text).as_ref() == Some(digest)
}

/// The digest of that name, as [`Sandbox::prepare`] takes it.
fn parse_digest(text: &str) -> Option<Digest> {
    let hex = text.strip_prefix("sha256:")?;
    let mut digest = Digest::default();
    if hex.len() != 2 * digest.len() || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}
