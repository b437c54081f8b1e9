//! What a made component has to read and to fill in.

use super::{Behaviour, Memory, instructions, words};

/// What a component lists beside its tools, and how it behaves: nothing in it has to be right.
#[derive(Clone, Debug)]
pub struct Library {
    /// Resources.
    pub resources: Vec<Resource>,
    /// Templates of resources.
    pub templates: Vec<Resource>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// How the three lists behave, in this order.
    pub lists: [Behaviour; 3],
    /// How `read-resource` behaves, whichever it is.
    pub read: Behaviour,
    /// How `get-prompt` behaves, whichever it is.
    pub get: Behaviour,
    /// The URI of what was read; that which was asked for, if it is not said.
    pub uri: Option<String>,
    /// The text of what was read, and of the one message of a prompt.
    pub answer: String,
}

impl Default for Library {
    fn default() -> Self {
        Self {
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            lists: [Behaviour::Returns; 3],
            read: Behaviour::Returns,
            get: Behaviour::Returns,
            uri: None,
            answer: "something".to_owned(),
        }
    }
}

/// One resource, or one template of them.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Its URI, or template.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Further members of its descriptor.
    pub extra: Option<String>,
}

impl Resource {
    /// A resource with nothing wrong about it but perhaps its URI.
    #[must_use]
    pub fn at(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            name: "thing".to_owned(),
            description: None,
            extra: None,
        }
    }
}

/// One prompt.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// Its arguments, and whether each is required.
    pub arguments: Vec<(String, bool)>,
    /// Further members of its descriptor.
    pub extra: Option<String>,
}

impl Prompt {
    /// A prompt with nothing wrong about it but perhaps its name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            arguments: Vec::new(),
            extra: None,
        }
    }
}

/// The parts of a component's text.
pub(super) struct Text {
    /// Functions of the core module.
    pub(super) core: String,
    /// Types and functions of the component inside.
    pub(super) inside: String,
    /// Exports of the whole.
    pub(super) exports: &'static str,
}

impl Library {
    pub(super) fn text(&self, memory: &mut Memory, memory_of: &str) -> Text {
        let resources: Vec<Vec<u8>> = self
            .resources
            .iter()
            .map(|one| memory.resource(one))
            .collect();
        let templates: Vec<Vec<u8>> = self
            .templates
            .iter()
            .map(|one| memory.resource(one))
            .collect();
        let prompts: Vec<Vec<u8>> = self.prompts.iter().map(|one| memory.prompt(one)).collect();
        let [resources, templates, prompts] = [resources, templates, prompts].map(|items| {
            let list = memory.list(&items);
            memory.aligned(&list)
        });
        let contents = memory.contents(self.uri.as_deref(), &self.answer);
        let read_result = memory.result_with(contents);
        let prompted = memory.prompted(&self.answer);
        let [list_resources, list_templates, list_prompts] =
            self.lists.map(|how| instructions(memory, how));
        let [read, get] = [self.read, self.get].map(|how| instructions(memory, how));
        // What was asked for is where its caller put it.
        let same_uri = if self.uri.is_some() {
            String::new()
        } else {
            format!(
                "(i32.store (i32.const {contents}) (local.get 0)) (i32.store offset=4 (i32.const {contents}) (local.get 1))"
            )
        };
        let core = format!(
            r#"
            (func (export "list-resources") (result i32) {list_resources} (i32.const {resources}))
            (func (export "list-templates") (result i32) {list_templates} (i32.const {templates}))
            (func (export "read-resource") (param i32 i32) (result i32) {read} {same_uri} (i32.const {read_result}))
            (func (export "list-prompts") (result i32) {list_prompts} (i32.const {prompts}))
            (func (export "get-prompt") (param i32 i32 i32 i32) (result i32) {get} (i32.const {prompted}))"#
        );
        let memory = format!(r#"(memory (core memory {memory_of} "memory"))"#);
        let realloc = r#"(realloc (core func $code "realloc"))"#;
        let inside = format!(
            r#"{TYPES}
        (func $list-resources (result (list $resource-info))
            (canon lift (core func $code "list-resources") {memory}))
        (func $list-templates (result (list $template))
            (canon lift (core func $code "list-templates") {memory}))
        (func $read-resource (param "uri" string) (result (result (list $contents) (error $read-error)))
            (canon lift (core func $code "read-resource") {memory} {realloc}))
        (func $list-prompts (result (list $prompt))
            (canon lift (core func $code "list-prompts") {memory}))
        (func $get-prompt (param "name" string) (param "arguments" string)
            (result (result $prompt-result (error $prompt-error)))
            (canon lift (core func $code "get-prompt") {memory} {realloc}))
        (export "list-resources" (func $list-resources))
        (export "list-templates" (func $list-templates))
        (export "read-resource" (func $read-resource))
        (export "list-prompts" (func $list-prompts))
        (export "get-prompt" (func $get-prompt))"#
        );
        Text {
            core,
            inside,
            exports: r#"(export "longshore:tool/resources@0.1.0" (instance $tools))
    (export "longshore:tool/prompts@0.1.0" (instance $tools))"#,
        }
    }
}

impl Memory {
    fn resource(&mut self, resource: &Resource) -> Vec<u8> {
        [
            self.string(&resource.uri),
            self.string(&resource.name),
            self.option(None),
            self.option(resource.description.as_deref()),
            self.option(resource.extra.as_deref()),
        ]
        .concat()
    }

    fn prompt(&mut self, prompt: &Prompt) -> Vec<u8> {
        let arguments: Vec<Vec<u8>> = prompt
            .arguments
            .iter()
            .map(|(name, required)| {
                [
                    self.string(name),
                    self.option(None),
                    words([u32::from(*required)]),
                ]
                .concat()
            })
            .collect();
        [
            self.string(&prompt.name),
            self.option(None),
            self.option(None),
            self.list(&arguments),
            self.option(prompt.extra.as_deref()),
        ]
        .concat()
    }

    /// One piece of contents, and where it lies.
    fn contents(&mut self, uri: Option<&str>, text: &str) -> u32 {
        let contents = [
            self.string(uri.unwrap_or_default()),
            self.option(None),
            words([0]),
            self.string(text),
            self.option(None),
        ]
        .concat();
        self.aligned(&contents)
    }

    /// `ok` of a list with what lies there, and where that lies. `read-error` is seven words long.
    fn result_with(&mut self, contents: u32) -> u32 {
        self.aligned(&words([0, contents, 1, 0, 0, 0, 0, 0]))
    }

    /// `ok` of a prompt with one text of the person's, and where it lies.
    fn prompted(&mut self, text: &str) -> u32 {
        let mut message = [words([0]), words([0]), self.string(text)].concat();
        message.resize(48, 0);
        let messages = self.list(&[message]);
        let result = [words([0]), self.option(None), messages, words([0, 0])].concat();
        self.aligned(&result)
    }
}

/// The types of `wit/tool.wit` that stand in the signatures of `resources` and `prompts`, beside those of `tools`.
const TYPES: &str = r#"
    (type $resource-info' (record (field "uri" string) (field "name" string) (field "mime-type" (option string))
        (field "description" (option string)) (field "extra" (option string))))
    (export $resource-info "resource-info" (type $resource-info'))
    (type $template' (record (field "uri-template" string) (field "name" string) (field "mime-type" (option string))
        (field "description" (option string)) (field "extra" (option string))))
    (export $template "template" (type $template'))
    (type $contents' (record (field "uri" string) (field "mime-type" (option string)) (field "body" $body)
        (field "meta" (option string))))
    (export $contents "contents" (type $contents'))
    (type $read-error' (variant (case "not-found") (case "protocol" $rpc-error) (case "cancelled")))
    (export $read-error "read-error" (type $read-error'))
    (type $argument' (record (field "name" string) (field "description" (option string)) (field "required" bool)))
    (export $argument "argument" (type $argument'))
    (type $prompt' (record (field "name" string) (field "title" (option string)) (field "description" (option string))
        (field "arguments" (list $argument)) (field "extra" (option string))))
    (export $prompt "prompt" (type $prompt'))
    (type $role' (enum "user" "assistant"))
    (export $role "role" (type $role'))
    (type $message' (record (field "role" $role) (field "content" $block)))
    (export $message "message" (type $message'))
    (type $prompt-result' (record (field "description" (option string)) (field "messages" (list $message))))
    (export $prompt-result "prompt-result" (type $prompt-result'))
    (type $prompt-error' (variant (case "invalid" string) (case "protocol" $rpc-error) (case "cancelled")))
    (export $prompt-error "prompt-error" (type $prompt-error'))
"#;
