//! All components that are in force, by tool name.
//!
//! A registry never changes: installing and removing give a new one, which shares what stayed. Calls that began with
//! the old one go on with it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::component::{Component, Name};
use crate::tool::Tool;

/// A component in force, with what its user prepared for it.
#[derive(Debug)]
pub struct Entry<T> {
    /// What is kept of it.
    pub component: Component,
    /// What was prepared.
    pub payload: T,
}

/// One tool and the component that has it.
#[derive(Debug)]
pub struct Owned<'r, T> {
    /// The component.
    pub entry: &'r Arc<Entry<T>>,
    /// The tool.
    pub tool: &'r Tool,
}

/// A part of the list of tools.
#[derive(Debug)]
pub struct Page<'r, T> {
    /// The tools, sorted by name.
    pub tools: Vec<Owned<'r, T>>,
    /// What to give as `after` for the next part; nothing if this is the last.
    pub next: Option<&'r str>,
}

/// Two components offer the same tool name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "tool {tool:?} of component \"{newcomer}\" is already offered by component \"{holder}\"; rename the tool, or \
     remove \"{holder}\" first"
)]
pub struct Clash {
    /// The tool's name.
    pub tool: String,
    /// The component that has it.
    pub holder: Name,
    /// The component that wants it too.
    pub newcomer: Name,
}

impl Clash {
    /// The reason for programs, one of the closed list of upload reasons.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        "name-collision"
    }
}

/// The components in force. Every tool name has exactly one owner.
#[derive(Debug)]
pub struct Registry<T> {
    components: BTreeMap<Name, Arc<Entry<T>>>,
    /// For each tool its component and its place among that component's tools.
    tools: BTreeMap<String, (Arc<Entry<T>>, usize)>,
}

// Not derived: that would ask for `T: Clone`, though the payloads are shared.
impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            components: self.components.clone(),
            tools: self.tools.clone(),
        }
    }
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            components: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

impl<T> Registry<T> {
    /// A registry of these components; of several with one name the last is in force.
    pub fn of(components: impl IntoIterator<Item = (Component, T)>) -> Result<Self, Clash> {
        let mut registry = Self::default();
        for (component, payload) in components {
            registry.put(component, payload)?;
        }
        Ok(registry)
    }

    /// The registry with this component in force under its name, in place of an older one of that name.
    pub fn with(&self, component: Component, payload: T) -> Result<Self, Clash> {
        let mut next = self.clone();
        next.put(component, payload)?;
        Ok(next)
    }

    /// The registry without the component of that name; the same if there is none.
    #[must_use]
    pub fn without(&self, name: &Name) -> Self {
        let mut next = self.clone();
        next.take(name);
        next
    }

    /// Whether [`Self::with`] would succeed, asked before anything is prepared.
    pub fn check(&self, component: &Component) -> Result<(), Clash> {
        for (index, tool) in component.tools.iter().enumerate() {
            let earlier = component.tools[..index].iter().any(|t| t.name == tool.name);
            let holder = match self.tools.get(&tool.name) {
                Some((entry, _)) if entry.component.name != component.name => &entry.component.name,
                _ if earlier => &component.name,
                _ => continue,
            };
            return Err(Clash {
                tool: tool.name.clone(),
                holder: holder.clone(),
                newcomer: component.name.clone(),
            });
        }
        Ok(())
    }

    /// The tool of that name and its component.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<Owned<'_, T>> {
        self.tools.get(name).map(owned)
    }

    /// The component of that name.
    #[must_use]
    pub fn component(&self, name: &Name) -> Option<&Arc<Entry<T>>> {
        self.components.get(name)
    }

    /// All components, sorted by name.
    pub fn components(&self) -> impl ExactSizeIterator<Item = &Arc<Entry<T>>> {
        self.components.values()
    }

    /// All tools, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = Owned<'_, T>> {
        self.tools.values().map(owned)
    }

    /// The first `limit` tools, at least one, whose names come after the given one. That name need not exist any more, so that a
    /// cursor outlives a change.
    #[must_use]
    pub fn page(&self, after: Option<&str>, limit: usize) -> Page<'_, T> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.tools.range::<str, _>((from, Bound::Unbounded));
        let part: Vec<_> = rest.by_ref().take(limit.max(1)).collect();
        let last = part.last().map(|(name, _)| name.as_str());
        Page {
            next: last.filter(|_| rest.next().is_some()),
            tools: part.into_iter().map(|(_, at)| owned(at)).collect(),
        }
    }

    fn put(&mut self, component: Component, payload: T) -> Result<(), Clash> {
        self.check(&component)?;
        self.take(&component.name);
        let entry = Arc::new(Entry { component, payload });
        for (index, tool) in entry.component.tools.iter().enumerate() {
            self.tools
                .insert(tool.name.clone(), (Arc::clone(&entry), index));
        }
        self.components.insert(entry.component.name.clone(), entry);
        Ok(())
    }

    fn take(&mut self, name: &Name) {
        if let Some(old) = self.components.remove(name) {
            for tool in &old.component.tools {
                self.tools.remove(&tool.name);
            }
        }
    }
}

fn owned<T>((entry, index): &(Arc<Entry<T>>, usize)) -> Owned<'_, T> {
    Owned {
        entry,
        tool: &entry.component.tools[*index],
    }
}
