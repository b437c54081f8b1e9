//! What components are granted: kept by name, put in force for each, and shown.

use std::sync::Arc;

use longshore_catalog::component::{Component, Name};
use longshore_catalog::registry::{Entry, Registry};
use longshore_catalog::store::StoreError;
use longshore_policy::grant::Grant;
use longshore_policy::pattern::HostPattern;
use longshore_policy::policy::{Policy, Tenant};
use longshore_sandbox::dirs;
use serde_json::{Value, json};

use crate::components::ChangeError;
use crate::loaded::Loaded;
use crate::reason::NAME_COLLISION;
use crate::reason::Refusal;
use crate::server::Server;

/// What a component is granted, or why that cannot be told: then it is not served.
pub(crate) type Granted = Result<Arc<Grant>, Refusal>;

fn refusal(message: impl Into<String>) -> Refusal {
    Refusal::new("grant", message)
}

fn read(text: &str) -> Granted {
    let unreadable = |fault: String| {
        refusal(format!(
            "what it is granted cannot be read, so it is not served: {fault}"
        ))
    };
    let value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let grant = Grant::of_json(value).map_err(|fault| unreadable(fault.to_string()))?;
    Ok(Arc::new(grant))
}

impl Server {
    /// Reads what the store has. Before anything is served.
    pub(crate) async fn read_grants(&self) -> Result<(), StoreError> {
        for (name, text) in self.components.grants().await? {
            self.grants.lock().insert(name, read(&text));
        }
        Ok(())
    }

    fn granted(&self, name: &Name) -> Granted {
        let granted = self.grants.lock().get(name).cloned();
        granted.unwrap_or_else(|| Ok(Arc::default()))
    }

    /// There is one tenant, which may have whatever the operator grants.
    fn tenant(&self) -> Tenant {
        Tenant {
            most: None,
            any_host: self.settings.any_host,
        }
    }

    fn equip(&self, loaded: &Loaded, grant: &Grant) {
        let (tenant, own) = (self.tenant(), &self.settings.limits);
        let asked = loaded.manifest.as_ref();
        loaded.put_in_force(Policy::in_force(asked, grant, &tenant, own));
    }

    /// Whether a component could be served under its name, with what that is granted.
    pub(crate) fn would_fit(&self, component: &Component, loaded: &Loaded) -> Result<(), Refusal> {
        let grant = self.granted(&component.name)?;
        self.equip(loaded, &grant);
        let checked = self.registry().check(component);
        checked.map_err(|clash| Refusal::new(NAME_COLLISION, clash.to_string()))
    }

    /// The registry with a component that has what it is granted.
    pub(crate) fn extended(
        &self,
        registry: &Registry<Loaded>,
        component: &Component,
        loaded: Loaded,
    ) -> Result<Registry<Loaded>, Refusal> {
        let grant = self.granted(&component.name)?;
        self.equip(&loaded, &grant);
        registry
            .with(component.clone(), loaded)
            .map_err(|clash| Refusal::new(NAME_COLLISION, clash.to_string()))
    }

    /// Grants to a component what this says and nothing else. Runs that began before keep what they had.
    pub async fn grant(&self, name: Name, grant: Grant) -> Result<(), ChangeError> {
        if !self.settings.any_host
            && let Some(rule) = grant.http.iter().find(|rule| rule.host == HostPattern::Any)
        {
            return Err(refusal(format!(
                "`{rule}` holds every host there is: name hosts, or start the server with --set any_host=true"
            ))
            .into());
        }
        let (mounts, own) = (grant.dirs.clone(), self.settings.own_dirs.clone());
        let looked = tokio::task::spawn_blocking(move || {
            mounts
                .iter()
                .try_for_each(|mount| dirs::check(&mount.host, &own))
        });
        match looked.await {
            Ok(Ok(())) => {}
            Ok(Err(unopened)) => return Err(refusal(unopened.to_string()).into()),
            Err(panicked) => return Err(Refusal::new("host", panicked.to_string()).into()),
        }
        let _alone = self.changing.lock().await;
        let registry = self.registry();
        let entry = registry.component(&name);
        // What was granted to a component that is gone since can be taken back.
        let is_broken = self.broken.lock().iter().any(|broken| broken.name == name);
        if entry.is_none() && !is_broken && !self.grants.lock().contains_key(&name) {
            return Err(ChangeError::Unknown(name));
        }
        let text = serde_json::to_string(&grant).map_err(|error| refusal(error.to_string()))?;
        let kept = (!grant.is_empty()).then_some(text);
        self.components.grant(name.clone(), kept).await?;
        if let Some(entry) = entry {
            self.equip(&entry.payload, &grant);
        }
        tracing::info!(component = %name, "what a component is granted has changed");
        if entry.is_none() && !is_broken && grant.is_empty() {
            self.grants.lock().remove(&name);
            return Ok(());
        }
        self.grants.lock().insert(name.clone(), Ok(Arc::new(grant)));
        if entry.is_none() {
            self.serve_again(&name).await?;
        }
        Ok(())
    }

    /// Names that something is granted to and that no component has.
    pub(crate) fn granted_to_nobody(&self) -> Vec<Name> {
        let registry = self.registry();
        let broken = self.broken.lock();
        let is_nobodys = |name: &&Name| {
            registry.component(name).is_none() && !broken.iter().any(|broken| broken.name == **name)
        };
        let grants = self.grants.lock();
        let mut names: Vec<Name> = grants.keys().filter(is_nobodys).cloned().collect();
        names.sort();
        names
    }

    /// The same for the only component of a process that keeps nothing, before it is there.
    pub fn grant_beforehand(&self, name: &Name, grant: Grant) {
        self.grants.lock().insert(name.clone(), Ok(Arc::new(grant)));
    }

    /// Why a run of a component that begins now cannot be repeated.
    pub(crate) fn volatile(&self, entry: &Entry<Loaded>) -> Vec<String> {
        let mounts = entry.payload.policy();
        let mounts = mounts.dirs.iter().map(|mount| {
            format!(
                "it has a directory of the host at {}, whose contents are not recorded",
                mount.guest
            )
        });
        entry
            .component
            .volatile
            .iter()
            .cloned()
            .chain(mounts)
            .collect()
    }

    /// What a component asks for, is granted, and has.
    pub(crate) fn policy_shown(&self, entry: &Entry<Loaded>) -> Value {
        json!({
            "asked": entry.payload.manifest,
            "granted": self.shown(&entry.component.name),
            "inForce": *entry.payload.policy(),
        })
    }

    /// The same of a name, also of one that is not served: it has nothing, whatever it is granted.
    pub(crate) fn grant_shown(&self, name: &Name) -> Option<Value> {
        let registry = self.registry();
        if let Some(entry) = registry.component(name) {
            return Some(self.policy_shown(entry));
        }
        let is_broken = self.broken.lock().iter().any(|broken| broken.name == *name);
        let is_known = is_broken || self.grants.lock().contains_key(name);
        is_known.then(|| self.nothing_in_force(name))
    }

    /// A name that is not served, and what it is granted.
    pub(crate) fn nothing_in_force(&self, name: &Name) -> Value {
        json!({ "asked": null, "granted": self.shown(name), "inForce": null })
    }

    fn shown(&self, name: &Name) -> Grant {
        let granted = self.granted(name);
        granted.map(Arc::unwrap_or_clone).unwrap_or_default()
    }
}
