//! The walk itself: one pass over all sections, counting.

use longshore_policy::manifest::{self, Manifest};
use wasmparser::{
    BinaryReader, ComponentAlias, ComponentExternalKind, ComponentInstance,
    ComponentOuterAliasKind, CustomSectionReader, Encoding, FunctionBody, Instance, Operator,
    Parser, Payload, SectionLimited,
};

use super::{Bounds, Facts, types};
use crate::refusal::{Reason, Refusal};
use crate::typed::docs::{self, Docs};

/// Walks a component whose first bytes have been looked at.
pub(super) fn walk(bytes: &[u8], bounds: &Bounds) -> Result<Facts, Refusal> {
    let mut walk = Walk {
        bytes,
        bounds,
        scopes: vec![Scope::new(Encoding::Component)],
        parts: 0,
        functions: 0,
        jump_targets: 0,
        has_own_manifest: false,
        facts: Facts::default(),
    };
    for payload in Parser::new(0).parse_all(bytes) {
        walk.payload(payload.map_err(malformed)?)?;
    }
    Ok(walk.facts)
}

struct Walk<'a> {
    bytes: &'a [u8],
    bounds: &'a Bounds,
    /// The components around the current place, outermost first, and the module in it, if any.
    scopes: Vec<Scope>,
    parts: u64,
    functions: u64,
    jump_targets: u64,
    facts: Facts,
    /// The manifest that was read is not that of a part.
    has_own_manifest: bool,
}

/// A module or component that has been begun.
struct Scope {
    encoding: Encoding,
    weight: Weight,
    /// Its index space of components: what one instantiation of each costs, if that can be told.
    components: Vec<Option<Weight>>,
}

impl Scope {
    fn new(encoding: Encoding) -> Self {
        Self {
            encoding,
            weight: Weight::default(),
            components: Vec::new(),
        }
    }
}

/// What it costs to instantiate something once.
#[derive(Clone, Copy, Default)]
struct Weight {
    instances: u64,
    items: u64,
}

impl Weight {
    /// Saturating, since it grows exponentially with the size of an upload.
    fn add(&mut self, other: Self) {
        self.instances = self.instances.saturating_add(other.instances);
        self.items = self.items.saturating_add(other.items);
    }
}

impl Walk<'_> {
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), Refusal> {
        match payload {
            Payload::Version { encoding, .. } => self.version(encoding),
            Payload::ModuleSection { .. } => self.enter(Encoding::Module),
            Payload::ComponentSection { .. } => self.enter(Encoding::Component),
            Payload::End(_) => {
                self.leave();
                Ok(())
            }

            Payload::FunctionSection(section) => self.functions(count(&section)?),
            Payload::CodeSectionEntry(body) => self.function(&body),
            Payload::MemorySection(section) => self.memories(section),
            Payload::TableSection(section) => self.tables(section),

            Payload::InstanceSection(section) => self.core_instances(section),
            Payload::ComponentInstanceSection(section) => self.instances(section),
            Payload::ComponentAliasSection(section) => self.aliases(section),
            Payload::ComponentTypeSection(section) => self.types(&section),
            Payload::ComponentImportSection(section) => self.imports(section),
            Payload::ComponentExportSection(section) => self.exports(section),
            Payload::CustomSection(section) => self.custom(&section),
            Payload::CoreTypeSection(section) => self.items(count(&section)?),
            Payload::ComponentCanonicalSection(section) => self.items(count(&section)?),

            // Whatever is wrong with the rest, the validator of the compile child will say.
            _ => Ok(()),
        }
    }

    /// The manifest is the component's own, or that of a module in it: a compiler puts it there, and tools that make
    /// the component leave it. What a component is composed of asks for nothing by itself.
    fn custom(&mut self, section: &CustomSectionReader<'_>) -> Result<(), Refusal> {
        let is_own = match &self.scopes[..] {
            [_] => true,
            [_, inner] if inner.encoding == Encoding::Module => false,
            _ => return Ok(()),
        };
        if section.name() == docs::SECTION {
            // That of the component as a whole goes before those of its modules.
            if is_own || self.facts.docs == Docs::default() {
                self.facts.docs = Docs::read(section.data());
            }
            return Ok(());
        }
        if section.name() != manifest::SECTION {
            return Ok(());
        }
        let refuse = |fault: &str| {
            let place = manifest::SECTION;
            Err(Refusal::new(
                Reason::Manifest,
                format!("section `{place}`: {fault}"),
            ))
        };
        match (self.facts.manifest.is_some(), self.has_own_manifest, is_own) {
            (false, _, _) | (true, false, true) => {}
            // Whoever put the component together goes before whoever compiled a part of it.
            (true, true, false) => return Ok(()),
            (true, true, true) | (true, false, false) => return refuse("there are two of them"),
        }
        let Ok(text) = std::str::from_utf8(section.data()) else {
            return refuse("it is no text");
        };
        if let Err(fault) = Manifest::of_toml(text) {
            return refuse(&fault.to_string());
        }
        self.facts.manifest = Some(text.to_owned());
        self.has_own_manifest = is_own;
        Ok(())
    }

    fn scope(&mut self) -> &mut Scope {
        self.scopes
            .last_mut()
            .expect("the outermost scope ends with the last payload")
    }

    fn version(&mut self, encoding: Encoding) -> Result<(), Refusal> {
        if self.scope().encoding != encoding {
            return Err(Refusal::new(
                Reason::Malformed,
                "a module where a component was announced, or the reverse",
            ));
        }
        Ok(())
    }

    fn enter(&mut self, encoding: Encoding) -> Result<(), Refusal> {
        self.parts += 1;
        within(
            self.parts,
            self.bounds.parts,
            Reason::TooManyInstances,
            "modules and components inside it",
        )?;
        within(
            self.scopes.len() as u64,
            self.bounds.nesting as u64,
            Reason::TypeDepth,
            "levels of components in components",
        )?;
        self.scopes.push(Scope::new(encoding));
        Ok(())
    }

    fn leave(&mut self) {
        let left = self.scopes.pop().expect("every end has had its beginning");
        let Some(parent) = self.scopes.last_mut() else {
            return;
        };
        if left.encoding == Encoding::Component {
            parent.components.push(Some(left.weight));
        }
    }

    fn functions(&mut self, count: u64) -> Result<(), Refusal> {
        self.functions += count;
        within(
            self.functions,
            self.bounds.functions,
            Reason::TooManyFunctions,
            "functions",
        )
    }

    fn function(&mut self, body: &FunctionBody<'_>) -> Result<(), Refusal> {
        within(
            body.range().len() as u64,
            self.bounds.function_bytes as u64,
            Reason::FunctionSize,
            "bytes in one function",
        )?;
        let mut operators = body.get_operators_reader().map_err(malformed)?;
        while !operators.eof() {
            if let Operator::BrTable { targets } = operators.read().map_err(malformed)? {
                self.jump_targets += u64::from(targets.len());
                within(
                    self.jump_targets,
                    self.bounds.jump_targets,
                    Reason::FunctionSize,
                    "targets in jump tables",
                )?;
            }
        }
        Ok(())
    }

    fn memories(&self, section: wasmparser::MemorySectionReader<'_>) -> Result<(), Refusal> {
        for memory in section {
            let memory = memory.map_err(malformed)?;
            let page = 1_u64
                .checked_shl(memory.page_size_log2.unwrap_or(16))
                .unwrap_or(u64::MAX);
            let bytes = memory.initial.saturating_mul(page);
            within(
                bytes,
                self.bounds.memory_bytes,
                Reason::MemoryMin,
                "bytes at the start of a memory",
            )?;
        }
        Ok(())
    }

    fn tables(&self, section: wasmparser::TableSectionReader<'_>) -> Result<(), Refusal> {
        for table in section {
            let elements = table.map_err(malformed)?.ty.initial;
            within(
                elements,
                self.bounds.table_elements,
                Reason::TableMin,
                "elements at the start of a table",
            )?;
        }
        Ok(())
    }

    fn core_instances(
        &mut self,
        section: wasmparser::InstanceSectionReader<'_>,
    ) -> Result<(), Refusal> {
        for instance in section {
            let weight = match instance.map_err(malformed)? {
                Instance::Instantiate { args, .. } => Weight {
                    instances: 1,
                    items: 1 + args.len() as u64,
                },
                Instance::FromExports(exports) => Weight {
                    instances: 0,
                    items: 1 + exports.len() as u64,
                },
            };
            self.weigh(weight)?;
        }
        Ok(())
    }

    fn instances(
        &mut self,
        section: wasmparser::ComponentInstanceSectionReader<'_>,
    ) -> Result<(), Refusal> {
        for instance in section {
            match instance.map_err(malformed)? {
                ComponentInstance::Instantiate {
                    component_index,
                    args,
                } => {
                    let whole = self.component(0, component_index)?.ok_or_else(|| {
                        Refusal::new(
                            Reason::TooManyInstances,
                            "it instantiates a component that is handed in from elsewhere, which cannot be \
                             counted; instantiate components where they are defined",
                        )
                    })?;
                    self.weigh(whole)?;
                    self.items(1 + args.len() as u64)?;
                }
                ComponentInstance::FromExports(exports) => self.items(1 + exports.len() as u64)?,
            }
        }
        Ok(())
    }

    fn aliases(&mut self, section: SectionLimited<'_, ComponentAlias<'_>>) -> Result<(), Refusal> {
        for alias in section {
            match alias.map_err(malformed)? {
                ComponentAlias::Outer {
                    kind: ComponentOuterAliasKind::Component,
                    count,
                    index,
                } => {
                    let known = self.component(count, index)?;
                    self.scope().components.push(known);
                }
                ComponentAlias::InstanceExport {
                    kind: ComponentExternalKind::Component,
                    ..
                } => {
                    self.scope().components.push(None);
                }
                ComponentAlias::Outer { .. }
                | ComponentAlias::InstanceExport { .. }
                | ComponentAlias::CoreInstanceExport { .. } => {}
            }
            self.items(1)?;
        }
        Ok(())
    }

    fn types(
        &mut self,
        section: &wasmparser::ComponentTypeSectionReader<'_>,
    ) -> Result<(), Refusal> {
        let range = section.range();
        within(
            range.len() as u64,
            self.bounds.type_bytes as u64,
            Reason::TypeSize,
            "bytes in one section of types",
        )?;
        let inside = self
            .bytes
            .get(range.clone())
            .expect("a section lies in the upload");
        let written = types::read(
            BinaryReader::new(inside, range.start),
            self.bounds.type_nesting,
        )
        .map_err(malformed)?;
        if written.too_deep {
            return Err(Refusal::new(
                Reason::TypeDepth,
                format!(
                    "types inside types, more than {} deep",
                    self.bounds.type_nesting
                ),
            ));
        }
        self.items(written.items)
    }

    fn imports(
        &mut self,
        section: wasmparser::ComponentImportSectionReader<'_>,
    ) -> Result<(), Refusal> {
        for import in section {
            let import = import.map_err(malformed)?;
            let kind = import.ty.kind();
            if kind == ComponentExternalKind::Component {
                self.scope().components.push(None);
            }
            if self.scopes.len() == 1 {
                let name = import.name.name;
                if matches!(
                    kind,
                    ComponentExternalKind::Component | ComponentExternalKind::Module
                ) {
                    return Err(Refusal::new(
                        Reason::Import,
                        format!(
                            "it imports `{name}`, a {}, which nothing here provides; compose it in",
                            kind.desc()
                        ),
                    ));
                }
                self.facts.imports.push(name.to_owned());
                within(
                    self.facts.imports.len() as u64,
                    self.bounds.imports as u64,
                    Reason::TooManyFunctions,
                    "imports",
                )?;
            }
            self.items(1)?;
        }
        Ok(())
    }

    fn exports(
        &mut self,
        section: wasmparser::ComponentExportSectionReader<'_>,
    ) -> Result<(), Refusal> {
        for export in section {
            let export = export.map_err(malformed)?;
            // An export defines its item anew, under the next index.
            if export.kind == ComponentExternalKind::Component {
                let known = self.component(0, export.index)?;
                self.scope().components.push(known);
            }
            if self.scopes.len() == 1 {
                self.facts.exports.push(export.name.name.to_owned());
                within(
                    self.facts.exports.len() as u64,
                    self.bounds.exports as u64,
                    Reason::TooManyFunctions,
                    "exports",
                )?;
            }
            self.items(1)?;
        }
        Ok(())
    }

    /// What a component costs, seen from here: `outward` components out, the one of that index.
    /// `None` if that cannot be told.
    fn component(&self, outward: u32, index: u32) -> Result<Option<Weight>, Refusal> {
        (self.scopes.len() - 1)
            .checked_sub(outward as usize)
            .and_then(|scope| {
                self.scopes
                    .get(scope)?
                    .components
                    .get(index as usize)
                    .copied()
            })
            .ok_or_else(|| {
                Refusal::new(
                    Reason::Malformed,
                    format!("component {index} is used before it is defined"),
                )
            })
    }

    fn items(&mut self, items: u64) -> Result<(), Refusal> {
        self.weigh(Weight {
            instances: 0,
            items,
        })
    }

    fn weigh(&mut self, weight: Weight) -> Result<(), Refusal> {
        self.scope().weight.add(weight);
        let whole = self.scope().weight;
        within(
            whole.instances,
            self.bounds.instances,
            Reason::TooManyInstances,
            "or more core instances, nested ones written out",
        )?;
        within(
            whole.items,
            self.bounds.items,
            Reason::TooManyInstances,
            "or more definitions, those of nested instances written out",
        )
    }
}

fn within(found: u64, bound: u64, reason: Reason, what: &str) -> Result<(), Refusal> {
    if found <= bound {
        return Ok(());
    }
    let found = if found == u64::MAX {
        "too many to count".to_owned()
    } else {
        found.to_string()
    };
    Err(Refusal::new(
        reason,
        format!("{found} {what}, at most {bound} are allowed"),
    ))
}

/// How many items a section announces, which no item being smaller than a byte bounds.
fn count<T>(section: &SectionLimited<'_, T>) -> Result<u64, Refusal> {
    let count = section.count();
    if count as usize > section.range().len() {
        return Err(Refusal::new(
            Reason::Malformed,
            "a section announces more items than it has bytes",
        ));
    }
    Ok(u64::from(count))
}

// Owned, as an argument to `map_err`.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn malformed(error: wasmparser::Error) -> Refusal {
    Refusal::new(Reason::Malformed, error.to_string())
}
