//! How a run ended, and what a guest hands back.

use crate::control::StopReason;

/// A run that is over: its instance is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// How.
    pub ending: Ending,
    /// CPU time of the guest in this process, in microseconds, less what it took to repeat its past.
    pub cpu_us: u64,
    /// Time for which it was at work likewise: waiting for anything but a thread is not counted.
    pub active_us: u64,
    /// CPU time that it took to repeat its past, in microseconds.
    pub replay_cpu_us: u64,
    /// Import calls that it made since its start.
    pub calls: u64,
    /// What is left of its stdout.
    pub stdout: RingText,
    /// What is left of its stderr.
    pub stderr: RingText,
}

/// The newest part of what a guest printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RingText {
    /// Valid text; bytes that were none are replaced.
    pub text: String,
    /// Bytes that came before it and were dropped.
    pub dropped: u64,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The tool returned a result.
    Returned(ToolResult),
    /// The tool says that it failed; the result says why.
    ToolFailed(ToolResult),
    /// What was read of a resource.
    Read(Vec<Contents>),
    /// There is no such resource.
    NotFound,
    /// The prompt, filled in.
    Prompted(Prompt),
    /// An argument of the prompt is wrong; the guest's line says which and how.
    BadArgument(String),
    /// How an argument could go on.
    Completed(Completion),
    /// It answers with an error of the protocol.
    Protocol(RpcError),
    /// It gave up because it was cancelled.
    Cancelled,
    /// It was ended from outside.
    Stopped(StopReason),
    /// It was only to be repeated, and has no records for that import call.
    RecordsEnd {
        /// The number of the call.
        call: u64,
    },
    /// It could not go on.
    Fault(Fault),
}

/// What a tool returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// For people and models.
    pub content: Vec<Block>,
    /// For programs, JSON; checked to be well-formed and not too deep.
    pub structured: Option<String>,
    /// Further notes, a JSON object; checked likewise.
    pub meta: Option<String>,
}

/// One piece of content.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// A link to a resource.
    ResourceLink {
        /// Its address.
        uri: String,
        /// Its name.
        name: String,
        /// What it is.
        mime_type: Option<String>,
        /// What it holds.
        description: Option<String>,
    },
    /// A resource itself.
    Embedded {
        /// Its address.
        uri: String,
        /// What it is.
        mime_type: Option<String>,
        /// What it holds.
        body: Body,
    },
    /// One MCP content block as JSON; checked to be an object with a `type`.
    Raw(String),
}

/// Bytes that say what they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// The bytes.
    pub data: Vec<u8>,
    /// What they are.
    pub mime_type: String,
}

/// What a resource holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// One piece of what was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// The URI asked for, or one below it.
    pub uri: String,
    /// What it is.
    pub mime_type: Option<String>,
    /// What it holds.
    pub body: Body,
    /// Further notes, a JSON object; checked to be well-formed and not too deep.
    pub meta: Option<String>,
}

/// A prompt that was filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// What it is for.
    pub description: Option<String>,
    /// What is said, in order.
    pub messages: Vec<Message>,
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Block,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// How an argument could go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The best first.
    pub values: Vec<String>,
    /// How many there are, if known.
    pub total: Option<u32>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// An error of the protocol, as the guest gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RpcError {
    /// The guest's number.
    pub code: i32,
    /// The guest's line.
    pub message: String,
    /// The guest's data, JSON; checked to be well-formed.
    pub data: Option<String>,
}

/// Why a run could not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which kind.
    pub kind: FaultKind,
    /// One short line: no host paths, no addresses of host code.
    pub message: String,
}

/// The kinds of fault; all but the last are the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An instruction that cannot be executed: unreachable, division by zero, an address outside
    /// memory, a misuse of the interface.
    Trap,
    /// Calls nested too deeply.
    StackOverflow,
    /// More CPU time than allowed.
    CpuLimit,
    /// More memory or table than allowed, where the engine could not just refuse it.
    MemoryLimit,
    /// More handles than allowed.
    HandleLimit,
    /// A host call that carries more than allowed.
    HostcallLimit,
    /// A result larger than allowed.
    OutputLimit,
    /// Questions beyond what is allowed, again after a refusal.
    InputLimit,
    /// A result that is not what it should be: no JSON, not text.
    BadOutput,
    /// The guest ended its process.
    Exit,
    /// The guest did not repeat what it did before.
    Nondeterminism,
    /// More to be recorded than allowed.
    JournalLimit,
    /// More CPU time to repeat its past than that may take.
    ReplayLimit,
    /// Nobody knows whether a request that may change something was carried out.
    InDoubt,
    /// Our own fault.
    Host,
}
