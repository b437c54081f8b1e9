//! `wasi:io`: streams, and what went wrong in them. No stream ever has to be waited for.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::files::{NodeId, Refused};
use longshore_journal::http::Blob;
use wasmtime::component::{Resource, ResourceTableError};
use wasmtime::{Error, Result};

use super::clocks::Pollable;
use super::http::Content;
use super::time;
use crate::bindings::wasi_world::wasi::io::{error, streams};
use crate::fault::Halt;
use crate::host::State;
use crate::outside::Said;

/// What one read or write may carry. It is the same at every moment: what a guest may write must not
/// depend on how fast somebody takes it.
const CHUNK: u64 = 64 * 1024;
/// What the functions that write and flush in one may carry, as their interface says.
const FLUSHED: u64 = 4 * 1024;

/// Where bytes come from. A file is held while it is read.
pub enum Input {
    /// What the program was given as its input. All that read it share how far that was read.
    Stdin,
    /// A file, from there on.
    File { node: NodeId, at: u64 },
    /// The body of a response, from there on.
    Body { bytes: Blob, at: usize },
}

/// Where bytes go. A file is held while it is written.
pub enum Output {
    /// To the run's own output.
    Print(Print),
    /// To a file, from there on.
    File { node: NodeId, at: u64 },
    /// To the end of a file, wherever that is.
    Append { node: NodeId },
    /// Into the body of an HTTP message.
    Body(Content),
}

/// Which output of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Print {
    Stdout,
    Stderr,
}

/// Why an operation on a stream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The file could not be read or written.
    File(Refused),
    /// A body is as large as one may be.
    BodyFull,
}

/// An error of a stream, or the end of the guest.
pub enum StreamError {
    Closed,
    Failed(Failure),
    Trap(Error),
}

impl From<Error> for StreamError {
    fn from(error: Error) -> Self {
        Self::Trap(error)
    }
}

impl From<ResourceTableError> for StreamError {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

impl From<Refused> for StreamError {
    fn from(refused: Refused) -> Self {
        Self::Failed(Failure::File(refused))
    }
}

type StreamResult<T> = std::result::Result<T, StreamError>;

impl State {
    fn read_from(&mut self, stream: &Resource<Input>, len: u64) -> StreamResult<Vec<u8>> {
        match self.wasi.table.get_mut(stream)? {
            Input::Stdin => {
                let most = usize::try_from(len.min(CHUNK)).expect("a chunk is small");
                let read = self.wasi.read_stdin(most)?;
                if read.is_empty() && most > 0 {
                    return Err(StreamError::Closed);
                }
                Ok(read)
            }
            Input::File { node, at } => {
                let most = usize::try_from(len.min(CHUNK)).expect("a chunk is small");
                let (bytes, is_end) = self.wasi.files.read(*node, *at, most)?;
                if bytes.is_empty() && is_end {
                    return Err(StreamError::Closed);
                }
                *at += bytes.len() as u64;
                Ok(bytes.to_vec())
            }
            Input::Body { bytes, at } => {
                let most = usize::try_from(len.min(CHUNK)).expect("a chunk is small");
                let left = &bytes[*at..];
                if left.is_empty() {
                    return Err(StreamError::Closed);
                }
                let read = left[..left.len().min(most)].to_vec();
                *at += read.len();
                Ok(read)
            }
        }
    }

    fn skip_in(&mut self, stream: &Resource<Input>, len: u64) -> StreamResult<u64> {
        Ok(self.read_from(stream, len)?.len() as u64)
    }

    fn writable(&self, stream: &Resource<Output>) -> StreamResult<u64> {
        match self.wasi.table.get(stream)? {
            Output::Body(content) if content.is_full() => {
                Err(StreamError::Failed(Failure::BodyFull))
            }
            Output::Print(_) | Output::File { .. } | Output::Append { .. } | Output::Body(_) => {
                Ok(CHUNK)
            }
        }
    }

    fn write_to(&mut self, stream: &Resource<Output>, bytes: &[u8]) -> StreamResult<()> {
        let now = time(&self.world);
        let wasi = &mut self.wasi;
        match wasi.table.get_mut(stream)? {
            Output::Print(print) => {
                let print = *print;
                self.print(print, bytes)?;
            }
            Output::File { node, at } => {
                wasi.files.write(*node, *at, bytes, now)?;
                *at += bytes.len() as u64;
            }
            Output::Append { node } => {
                let end = wasi.files.size_of_file(*node)?;
                wasi.files.write(*node, end, bytes, now)?;
            }
            Output::Body(content) => {
                if !content.take(bytes) {
                    return Err(StreamError::Failed(Failure::BodyFull));
                }
            }
        }
        Ok(())
    }

    fn print(&mut self, print: Print, bytes: &[u8]) -> Result<()> {
        let Said { is_sure, .. } = self.says()?;
        let ring = match print {
            Print::Stdout => self.wasi.stdout.clone(),
            Print::Stderr => self.wasi.stderr.clone(),
        };
        if ring.keeps_head() {
            self.wasi.must_not_be_still("a program prints")?;
            ring.push_head(bytes);
        }
        if self.is_news() {
            ring.push(bytes, is_sure);
        }
        Ok(())
    }

    fn splice_to(
        &mut self,
        to: &Resource<Output>,
        from: &Resource<Input>,
        len: u64,
    ) -> StreamResult<u64> {
        let most = len.min(self.writable(to)?);
        let bytes = self.read_from(from, most)?;
        self.write_to(to, &bytes)?;
        Ok(bytes.len() as u64)
    }
}

/// A guest may write what `check-write` says, and no more.
fn at_most(what: &str, len: u64, most: u64) -> StreamResult<()> {
    if len > most {
        let message = format!("{what} of {len} bytes: at most {most} are allowed");
        return Err(StreamError::Trap(Halt::Misuse(message).into()));
    }
    Ok(())
}

fn zeroes(len: u64) -> Vec<u8> {
    vec![0; usize::try_from(len).expect("its size was checked")]
}

impl error::Host for State {}

impl error::HostError for State {
    fn to_debug_string(&mut self, error: Resource<Failure>) -> Result<String> {
        self.passes_on(import!("wasi:io/error.error.to-debug-string"), &error, 0)?;
        Ok(match self.wasi.table.get(&error)? {
            Failure::File(refused) => refused.to_string(),
            Failure::BodyFull => "the body is as large as one may be".to_owned(),
        })
    }

    fn drop(&mut self, error: Resource<Failure>) -> Result<()> {
        self.passes_drop(import!("wasi:io/error.error.drop"), error)
            .map(drop)
    }
}

impl streams::Host for State {
    fn convert_stream_error(&mut self, error: StreamError) -> Result<streams::StreamError> {
        match error {
            StreamError::Closed => Ok(streams::StreamError::Closed),
            StreamError::Failed(failure) => Ok(streams::StreamError::LastOperationFailed(
                self.wasi.table.push(failure)?,
            )),
            StreamError::Trap(error) => Err(error),
        }
    }
}

impl streams::HostInputStream for State {
    fn read(&mut self, stream: Resource<Input>, len: u64) -> StreamResult<Vec<u8>> {
        self.passes_on(import!("wasi:io/streams.input-stream.read"), &stream, len)?;
        self.read_from(&stream, len)
    }

    fn blocking_read(&mut self, stream: Resource<Input>, len: u64) -> StreamResult<Vec<u8>> {
        let import = import!("wasi:io/streams.input-stream.blocking-read");
        self.passes_on(import, &stream, len)?;
        self.read_from(&stream, len)
    }

    fn skip(&mut self, stream: Resource<Input>, len: u64) -> StreamResult<u64> {
        self.passes_on(import!("wasi:io/streams.input-stream.skip"), &stream, len)?;
        self.skip_in(&stream, len)
    }

    fn blocking_skip(&mut self, stream: Resource<Input>, len: u64) -> StreamResult<u64> {
        let import = import!("wasi:io/streams.input-stream.blocking-skip");
        self.passes_on(import, &stream, len)?;
        self.skip_in(&stream, len)
    }

    fn subscribe(&mut self, stream: Resource<Input>) -> Result<Resource<Pollable>> {
        self.passes_on(
            import!("wasi:io/streams.input-stream.subscribe"),
            &stream,
            0,
        )?;
        Ok(self.wasi.table.push(Pollable::Now)?)
    }

    fn drop(&mut self, stream: Resource<Input>) -> Result<()> {
        match self.passes_drop(import!("wasi:io/streams.input-stream.drop"), stream)? {
            Input::File { node, .. } => self.wasi.files.close(node),
            Input::Stdin | Input::Body { .. } => {}
        }
        Ok(())
    }
}

impl streams::HostOutputStream for State {
    fn check_write(&mut self, stream: Resource<Output>) -> StreamResult<u64> {
        let import = import!("wasi:io/streams.output-stream.check-write");
        self.passes_on(import, &stream, 0)?;
        self.writable(&stream)
    }

    fn write(&mut self, stream: Resource<Output>, bytes: Vec<u8>) -> StreamResult<()> {
        self.passes_on(import!("wasi:io/streams.output-stream.write"), &stream, 0)?;
        self.world.passed(&bytes);
        at_most("a write", bytes.len() as u64, CHUNK)?;
        self.write_to(&stream, &bytes)
    }

    fn blocking_write_and_flush(
        &mut self,
        stream: Resource<Output>,
        bytes: Vec<u8>,
    ) -> StreamResult<()> {
        let import = import!("wasi:io/streams.output-stream.blocking-write-and-flush");
        self.passes_on(import, &stream, 0)?;
        self.world.passed(&bytes);
        at_most("a write", bytes.len() as u64, FLUSHED)?;
        self.write_to(&stream, &bytes)
    }

    fn flush(&mut self, stream: Resource<Output>) -> StreamResult<()> {
        self.passes_on(import!("wasi:io/streams.output-stream.flush"), &stream, 0)?;
        Ok(())
    }

    fn blocking_flush(&mut self, stream: Resource<Output>) -> StreamResult<()> {
        let import = import!("wasi:io/streams.output-stream.blocking-flush");
        self.passes_on(import, &stream, 0)?;
        Ok(())
    }

    fn subscribe(&mut self, stream: Resource<Output>) -> Result<Resource<Pollable>> {
        let import = import!("wasi:io/streams.output-stream.subscribe");
        self.passes_on(import, &stream, 0)?;
        Ok(self.wasi.table.push(Pollable::Now)?)
    }

    fn write_zeroes(&mut self, stream: Resource<Output>, len: u64) -> StreamResult<()> {
        let import = import!("wasi:io/streams.output-stream.write-zeroes");
        self.passes_on(import, &stream, len)?;
        at_most("a write of zeroes", len, CHUNK)?;
        self.write_to(&stream, &zeroes(len))
    }

    fn blocking_write_zeroes_and_flush(
        &mut self,
        stream: Resource<Output>,
        len: u64,
    ) -> StreamResult<()> {
        let import = import!("wasi:io/streams.output-stream.blocking-write-zeroes-and-flush");
        self.passes_on(import, &stream, len)?;
        at_most("a write of zeroes", len, FLUSHED)?;
        self.write_to(&stream, &zeroes(len))
    }

    fn splice(
        &mut self,
        to: Resource<Output>,
        from: Resource<Input>,
        len: u64,
    ) -> StreamResult<u64> {
        self.passes_on(import!("wasi:io/streams.output-stream.splice"), &to, len)?;
        self.world.passed(&from.rep().to_le_bytes());
        self.splice_to(&to, &from, len)
    }

    fn blocking_splice(
        &mut self,
        to: Resource<Output>,
        from: Resource<Input>,
        len: u64,
    ) -> StreamResult<u64> {
        let import = import!("wasi:io/streams.output-stream.blocking-splice");
        self.passes_on(import, &to, len)?;
        self.world.passed(&from.rep().to_le_bytes());
        self.splice_to(&to, &from, len)
    }

    fn drop(&mut self, stream: Resource<Output>) -> Result<()> {
        match self.passes_drop(import!("wasi:io/streams.output-stream.drop"), stream)? {
            Output::File { node, .. } | Output::Append { node } => self.wasi.files.close(node),
            Output::Print(_) | Output::Body(_) => {}
        }
        Ok(())
    }
}
