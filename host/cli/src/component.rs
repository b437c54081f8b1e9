//! `component new`: a component of a core module, since servers take components only.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use serde_json::json;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER,
    WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasmparser::{Parser, Payload};
use wit_component::ComponentEncoder;
use wit_parser::PackageMetadata;

use crate::contents;
use crate::exit::{Exit, Failure, OrExit as _};
use crate::output::{facts, member};
use crate::{Done, answered};

/// The first bytes of a core module; those of a component differ in the last four.
const CORE: &[u8] = b"\0asm\x01\0\0\0";
/// What a program exports that was built for the first preview.
const START: &str = "_start";

/// Makes components.
#[derive(clap::Subcommand)]
pub(crate) enum Component {
    New(New),
}

/// Makes a component of a core module for WASI preview 1: of a program one that is run, of any other the world that its compiler left in it.
#[derive(clap::Args)]
pub(crate) struct New {
    /// The core module's file
    module: PathBuf,
    /// Where the component goes [default: beside the module, ending in .component.wasm]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Component {
    pub(crate) fn run(self) -> Result<Done, Failure> {
        match self {
            Self::New(new) => new.run(),
        }
    }
}

impl New {
    fn run(self) -> Result<Done, Failure> {
        let Self { module, output } = self;
        let shown = module.display();
        let bytes = contents::read(&module, contents::MOST_BYTES)
            .with_context(|| format!("reading {shown}"))
            .or_exit(Exit::Failed)?;
        let component = wrap(&bytes)
            .with_context(|| format!("making a component of {shown}"))
            .or_exit(Exit::Failed)?;
        let output = output.unwrap_or_else(|| module.with_extension("component.wasm"));
        std::fs::write(&output, &component)
            .with_context(|| format!("writing {}", output.display()))
            .or_exit(Exit::Failed)?;
        let made = json!({ "component": output.to_string_lossy(), "size": component.len() });
        Ok(answered(made, |made| {
            facts(&[
                ("component", member(made, "component")),
                ("size", Some(format!("{} bytes", made["size"]))),
            ])
        }))
    }
}

/// A component of a core module.
fn wrap(module: &[u8]) -> anyhow::Result<Vec<u8>> {
    ensure!(
        module.starts_with(CORE),
        "it is no core module; what is a component already can be pushed as it is"
    );
    let is_program = exports_start(module)?;
    let adapter = if is_program {
        WASI_SNAPSHOT_PREVIEW1_COMMAND_ADAPTER
    } else {
        WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER
    };
    // What a linker says of a module that has no types of a component is about how it was called.
    let mut component = ComponentEncoder::default()
        .validate(true)
        .module(module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .encode()?;
    let (_, bindings) = wit_component::metadata::decode(module)?;
    let world = &bindings.resolve.worlds[bindings.world];
    ensure!(
        is_program || !world.exports.is_empty(),
        "it is no program, and says nothing of what its functions take: build it with a tool that knows components, or as a program"
    );
    // What its author wrote describes its functions, and only this keeps it.
    if let Some(package) = world.package.filter(|_| !is_program) {
        let docs = PackageMetadata::extract(&bindings.resolve, package).encode()?;
        append(&mut component, PackageMetadata::SECTION_NAME, &docs)?;
    }
    Ok(component)
}

/// Whether it is a program.
fn exports_start(module: &[u8]) -> anyhow::Result<bool> {
    for payload in Parser::new(0).parse_all(module) {
        if let Payload::ExportSection(exports) = payload? {
            for export in exports {
                if export?.name == START {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// A section that engines do not read.
fn append(component: &mut Vec<u8>, name: &str, data: &[u8]) -> anyhow::Result<()> {
    let name_len = u32::try_from(name.len())?;
    let mut section = Vec::new();
    write_number(&mut section, name_len);
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(data);
    component.push(0);
    write_number(component, u32::try_from(section.len())?);
    component.append(&mut section);
    Ok(())
}

/// A number as WebAssembly writes it (LEB128).
fn write_number(to: &mut Vec<u8>, mut number: u32) {
    loop {
        let low = u8::try_from(number & 0x7f).expect("seven bits are a byte");
        number >>= 7;
        if number == 0 {
            to.push(low);
            return;
        }
        to.push(low | 0x80);
    }
}
