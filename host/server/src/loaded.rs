//! What a node holds ready for a component: its code, what clients are shown, and what their calls are checked against.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use longshore_catalog::component::{Component, LeftOut, Shape};
use longshore_catalog::header::{self, HeaderParameter};
use longshore_catalog::library;
use longshore_catalog::registry::{Entry, Kind, Place};
use longshore_catalog::schema::Compiled;
use longshore_catalog::tool::{Offered, TaskMode, Tool};
use longshore_policy::limits::Limits;
use longshore_policy::manifest::Manifest;
use longshore_policy::policy::Policy;
use longshore_protocol::tool::Tool as Descriptor;
use longshore_protocol::{prompt, resource};
use longshore_sandbox::offer::{self, Offer};

use crate::code::Code;
use crate::components::Source;
use crate::holds::Hold;
use crate::reason::Refusal;
use crate::run::Turns;

/// What this node holds ready for a component.
pub(crate) struct Loaded {
    pub(crate) code: Code,
    pub(crate) source: Source,
    /// What it asks for, if it says so.
    pub(crate) manifest: Option<Manifest>,
    /// What its runs may touch and use from now on.
    policy: ArcSwap<Policy>,
    tools: HashMap<String, Ready>,
    pub(crate) library: Library,
    _hold: Hold,
}

/// What is held ready for what is read and filled in.
pub(crate) struct Library {
    /// Descriptors, each at the place where the component has what it describes.
    resources: Vec<String>,
    templates: Vec<String>,
    prompts: Vec<String>,
    pub(crate) reads: Turns,
    pub(crate) fills: Turns,
    pub(crate) completions: Turns,
}

/// What is held ready for a tool.
pub(crate) struct Ready {
    pub(crate) input: Compiled,
    pub(crate) output: Option<Arc<Compiled>>,
    pub(crate) descriptor: String,
    /// The same for a client whose call may be handed off: what it gets then is not what the output schema says.
    pub(crate) without_output: Option<String>,
    /// Arguments that clients repeat as headers.
    pub(crate) headers: Vec<HeaderParameter>,
    pub(crate) turns: Turns,
}

impl Loaded {
    /// What a run of it may touch and use that begins now.
    pub(crate) fn policy(&self) -> Arc<Policy> {
        self.policy.load_full()
    }

    pub(crate) fn put_in_force(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    pub(crate) fn tool(&self, name: &str) -> Option<&Ready> {
        self.tools.get(name)
    }
}

/// The descriptor of what stands there, for a client whose calls may be handed off or are not.
pub(crate) fn descriptor<'r>(
    kind: Kind,
    place: &Place<'r, Loaded>,
    is_handed_off: bool,
) -> Option<&'r str> {
    let Entry { component, payload } = place.entry.as_ref();
    let library = &payload.library;
    let texts = match kind {
        Kind::Tool => {
            let tool = payload.tool(&component.tools.get(place.index)?.name)?;
            return Some(match &tool.without_output {
                Some(descriptor) if is_handed_off => descriptor,
                _ => &tool.descriptor,
            });
        }
        Kind::Resource => &library.resources,
        Kind::Template => &library.templates,
        Kind::Prompt => &library.prompts,
    };
    texts.get(place.index).map(String::as_str)
}

/// Makes ready what was accepted; what a client would not take is refused here.
pub(crate) fn ready(
    code: Code,
    component: &Component,
    source: Source,
    hold: Hold,
) -> Result<Loaded, Refusal> {
    let manifest = component.manifest.as_deref().map(Manifest::of_toml);
    let manifest = manifest
        .transpose()
        .map_err(|fault| Refusal::new("manifest", fault.to_string()))?;
    let tools = &component.tools;
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
        let written = |descriptor: &Descriptor<'_>| {
            descriptor.descriptor().map_err(|fault| {
                Refusal::new("list-tools", format!("tool {:?}: {fault}", tool.name))
            })
        };
        let may_be_handed_off = tool.task_mode != TaskMode::Never && tool.output_schema.is_some();
        let without_output = may_be_handed_off
            .then(|| {
                written(&Descriptor {
                    output_schema: None,
                    ..descriptor
                })
            })
            .transpose()?;
        let descriptor = written(&descriptor)?;
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
                without_output,
                headers,
                turns: Turns::default(),
            },
        );
    }
    Ok(Loaded {
        code,
        source,
        manifest,
        // It has nothing until somebody puts in force what it is granted.
        policy: ArcSwap::from_pointee(Policy::nothing(Limits::default())),
        tools: ready,
        library: ready_library(&component.library)?,
        _hold: hold,
    })
}

fn ready_library(library: &library::Library) -> Result<Library, Refusal> {
    let resources = library.resources.iter().map(|resource| {
        let descriptor = resource::Resource {
            uri: &resource.uri,
            name: &resource.name,
            mime_type: resource.mime_type.as_deref(),
            description: resource.description.as_deref(),
            extra: resource.extra.as_deref(),
        };
        descriptor.descriptor().map_err(|fault| {
            let message = format!("resource {:?}: {fault}", resource.uri);
            Refusal::new("list-resources", message)
        })
    });
    let templates = library.templates.iter().map(|template| {
        let descriptor = resource::Template {
            uri_template: &template.uri_template,
            name: &template.name,
            mime_type: template.mime_type.as_deref(),
            description: template.description.as_deref(),
            extra: template.extra.as_deref(),
        };
        descriptor.descriptor().map_err(|fault| {
            let message = format!("template {:?}: {fault}", template.uri_template);
            Refusal::new("list-templates", message)
        })
    });
    let prompts = library.prompts.iter().map(|prompt| {
        let arguments: Vec<prompt::Argument<'_>> = prompt
            .arguments
            .iter()
            .map(|argument| prompt::Argument {
                name: &argument.name,
                description: argument.description.as_deref(),
                required: argument.required,
            })
            .collect();
        let descriptor = prompt::Prompt {
            name: &prompt.name,
            title: prompt.title.as_deref(),
            description: prompt.description.as_deref(),
            arguments: &arguments,
            extra: prompt.extra.as_deref(),
        };
        descriptor.descriptor().map_err(|fault| {
            Refusal::new("list-prompts", format!("prompt {:?}: {fault}", prompt.name))
        })
    });
    Ok(Library {
        resources: resources.collect::<Result<_, _>>()?,
        templates: templates.collect::<Result<_, _>>()?,
        prompts: prompts.collect::<Result<_, _>>()?,
        reads: Turns::default(),
        fills: Turns::default(),
        completions: Turns::default(),
    })
}

/// What makes a component a tool, and what of it is none, in the words of whoever keeps it.
pub(crate) fn shape_of(offer: &Offer) -> (Shape, Vec<LeftOut>) {
    let shape = match offer.shape {
        offer::Shape::Tools => Shape::Tools,
        offer::Shape::Library => Shape::Library,
        offer::Shape::Command => Shape::Command,
    };
    let left_out = offer.left_out.iter().map(|left| LeftOut {
        function: left.function.clone(),
        why: left.why.clone(),
    });
    (shape, left_out.collect())
}

/// What a component lists, in the words of whoever checks it.
pub(crate) fn offered(offer: Offer) -> library::Offered {
    let Offer {
        shape: _,
        left_out: _,
        tools,
        resources,
        templates,
        prompts,
        completes,
    } = offer;
    library::Offered {
        tools: tools.into_iter().map(offered_tool).collect(),
        resources: resources
            .into_iter()
            .map(|resource| library::Resource {
                uri: resource.uri,
                name: resource.name,
                mime_type: resource.mime_type,
                description: resource.description,
                extra: resource.extra,
            })
            .collect(),
        templates: templates
            .into_iter()
            .map(|template| library::Template {
                uri_template: template.uri_template,
                name: template.name,
                mime_type: template.mime_type,
                description: template.description,
                extra: template.extra,
            })
            .collect(),
        prompts: prompts
            .into_iter()
            .map(|prompt| library::Prompt {
                name: prompt.name,
                title: prompt.title,
                description: prompt.description,
                arguments: prompt
                    .arguments
                    .into_iter()
                    .map(|argument| library::Argument {
                        name: argument.name,
                        description: argument.description,
                        required: argument.required,
                    })
                    .collect(),
                extra: prompt.extra,
            })
            .collect(),
        completes,
    }
}

fn offered_tool(tool: offer::Tool) -> Offered {
    let offer::Tool {
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
        offer::Mode::Never => TaskMode::Never,
        offer::Mode::OnDetach => TaskMode::OnDetach,
        offer::Mode::Auto => TaskMode::Auto,
        offer::Mode::Always => TaskMode::Always,
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
