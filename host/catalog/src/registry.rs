//! All components that are in force, by the names of what they offer.
//!
//! A registry never changes: installing and removing give a new one, which shares what stayed. Calls that began with
//! the old one go on with it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use crate::component::{Component, Name};
use crate::tool::Tool;
use crate::uri::{Pattern, has_dots};

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

/// What components offer under names that no two of them may share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Tools, by name.
    Tool,
    /// Resources, by URI.
    Resource,
    /// Templates of resources, by their text.
    Template,
    /// Prompts, by name.
    Prompt,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::Template, Self::Prompt];

    /// The names of that kind in a component, in the order in which it has them.
    fn names(self, component: &Component) -> Vec<&str> {
        let library = &component.library;
        match self {
            Self::Tool => component.tools.iter().map(|it| it.name.as_str()).collect(),
            Self::Resource => library.resources.iter().map(|it| it.uri.as_str()).collect(),
            Self::Template => library
                .templates
                .iter()
                .map(|it| it.uri_template.as_str())
                .collect(),
            Self::Prompt => library.prompts.iter().map(|it| it.name.as_str()).collect(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Prompt => "prompt",
        })
    }
}

/// Where something stands: in which component, and at which place among those of its kind.
#[derive(Debug)]
pub struct Place<'r, T> {
    /// The component.
    pub entry: &'r Arc<Entry<T>>,
    /// The place.
    pub index: usize,
}

/// A part of a list.
#[derive(Debug)]
pub struct Page<'r, T> {
    /// What stands there, sorted by name.
    pub places: Vec<Place<'r, T>>,
    /// What to give as `after` for the next part; nothing if this is the last.
    pub next: Option<&'r str>,
}

/// Two components offer the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} {name:?} of component \"{newcomer}\" is already offered by component \"{holder}\"; rename the {kind}, or \
     remove \"{holder}\" first"
)]
pub struct Clash {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
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

/// The components in force. Every name of a kind has exactly one owner.
#[derive(Debug)]
pub struct Registry<T> {
    components: BTreeMap<Name, Arc<Entry<T>>>,
    /// One for each kind, in its order.
    names: [Names<T>; Kind::ALL.len()],
    /// The templates, read.
    patterns: BTreeMap<String, Arc<Pattern>>,
}

type Names<T> = BTreeMap<String, (Arc<Entry<T>>, usize)>;

// Not derived, which would ask for a payload that can be cloned.
impl<T> Clone for Registry<T> {
    fn clone(&self) -> Self {
        Self {
            components: self.components.clone(),
            names: self.names.clone(),
            patterns: self.patterns.clone(),
        }
    }
}

impl<T> Default for Registry<T> {
    fn default() -> Self {
        Self {
            components: BTreeMap::new(),
            names: Default::default(),
            patterns: BTreeMap::new(),
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
        for kind in Kind::ALL {
            let names = kind.names(component);
            for (index, name) in names.iter().enumerate() {
                let holder = match self.names[kind as usize].get(*name) {
                    Some((entry, _)) if entry.component.name != component.name => {
                        &entry.component.name
                    }
                    _ if names[..index].contains(name) => &component.name,
                    _ => continue,
                };
                return Err(Clash {
                    kind,
                    name: (*name).to_owned(),
                    holder: holder.clone(),
                    newcomer: component.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The tool of that name and its component.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<Owned<'_, T>> {
        self.names[Kind::Tool as usize].get(name).map(owned)
    }

    /// Where something of that kind and name stands.
    #[must_use]
    pub fn place(&self, kind: Kind, name: &str) -> Option<Place<'_, T>> {
        self.names[kind as usize].get(name).map(place)
    }

    /// The component to read that resource from: the one that lists it, else the one with the template that it fits,
    /// of several the one that says most of it.
    #[must_use]
    pub fn holder_of(&self, uri: &str) -> Option<&Arc<Entry<T>>> {
        if let Some(listed) = self.place(Kind::Resource, uri) {
            return Some(listed.entry);
        }
        if has_dots(uri) {
            return None;
        }
        let (template, _) = self
            .patterns
            .iter()
            .filter(|(_, pattern)| pattern.fits(uri))
            .max_by_key(|(_, pattern)| pattern.literals())?;
        self.place(Kind::Template, template).map(|at| at.entry)
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
        self.names[Kind::Tool as usize].values().map(owned)
    }

    /// How many there are of that kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind as usize].len()
    }

    /// The first `limit` of a kind, at least one, whose names come after the given one. That name need not exist any
    /// more, so that a cursor outlives a change.
    #[must_use]
    pub fn page(&self, kind: Kind, after: Option<&str>, limit: usize) -> Page<'_, T> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = self.names[kind as usize].range::<str, _>((from, Bound::Unbounded));
        let part: Vec<_> = rest.by_ref().take(limit.max(1)).collect();
        let last = part.last().map(|(name, _)| name.as_str());
        Page {
            next: last.filter(|_| rest.next().is_some()),
            places: part.into_iter().map(|(_, at)| place(at)).collect(),
        }
    }

    fn put(&mut self, component: Component, payload: T) -> Result<(), Clash> {
        self.check(&component)?;
        self.take(&component.name);
        let entry = Arc::new(Entry { component, payload });
        for kind in Kind::ALL {
            for (index, name) in kind.names(&entry.component).into_iter().enumerate() {
                self.names[kind as usize].insert(name.to_owned(), (Arc::clone(&entry), index));
            }
        }
        for template in Kind::Template.names(&entry.component) {
            // One that cannot be read was refused at upload; nothing would fit it.
            if let Ok(pattern) = Pattern::parse(template) {
                self.patterns.insert(template.to_owned(), Arc::new(pattern));
            }
        }
        self.components.insert(entry.component.name.clone(), entry);
        Ok(())
    }

    fn take(&mut self, name: &Name) {
        if let Some(old) = self.components.remove(name) {
            for kind in Kind::ALL {
                for name in kind.names(&old.component) {
                    self.names[kind as usize].remove(name);
                    if kind == Kind::Template {
                        self.patterns.remove(name);
                    }
                }
            }
        }
    }
}

fn place<T>((entry, index): &(Arc<Entry<T>>, usize)) -> Place<'_, T> {
    Place {
        entry,
        index: *index,
    }
}

fn owned<T>((entry, index): &(Arc<Entry<T>>, usize)) -> Owned<'_, T> {
    Owned {
        entry,
        tool: &entry.component.tools[*index],
    }
}
