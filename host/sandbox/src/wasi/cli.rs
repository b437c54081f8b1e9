//! `wasi:cli`: no terminal, the environment that was granted, and the arguments and the input of a program; others have
//! none, and their input is at its end. Output goes to the rings.

use wasmtime::Result;
use wasmtime::component::Resource;

use super::io::{Input, Output, Print};
use super::none::{TerminalInput, TerminalOutput};
use crate::bindings::wasi_world::wasi::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
    terminal_stdin, terminal_stdout,
};
use crate::fault::Halt;
use crate::host::State;

impl environment::Host for State {
    fn get_environment(&mut self) -> Result<Vec<(String, String)>> {
        self.passes(import!("wasi:cli/environment.get-environment"), 0, 0)?;
        Ok(self.wasi.env.to_vec())
    }

    fn get_arguments(&mut self) -> Result<Vec<String>> {
        self.passes(import!("wasi:cli/environment.get-arguments"), 0, 0)?;
        let program = self.wasi.program.as_ref();
        Ok(program.map_or_else(Vec::new, |program| program.args.clone()))
    }

    fn initial_cwd(&mut self) -> Result<Option<String>> {
        self.passes(import!("wasi:cli/environment.initial-cwd"), 0, 0)?;
        Ok(None)
    }
}

impl exit::Host for State {
    fn exit(&mut self, status: Result<(), ()>) -> Result<()> {
        self.passes(import!("wasi:cli/exit.exit"), u64::from(status.is_err()), 0)?;
        Err(Halt::Exit(i32::from(status.is_err())).into())
    }

    fn exit_with_code(&mut self, code: u8) -> Result<()> {
        self.passes(import!("wasi:cli/exit.exit-with-code"), u64::from(code), 0)?;
        Err(Halt::Exit(i32::from(code)).into())
    }
}

// The streams and terminals of a guest are not counted: nothing is seen in asking for them, and languages ask at their
// first use, which may lie in a step that is left out later.

impl stdin::Host for State {
    fn get_stdin(&mut self) -> Result<Resource<Input>> {
        Ok(self.wasi.table.push(Input::Stdin)?)
    }
}

impl stdout::Host for State {
    fn get_stdout(&mut self) -> Result<Resource<Output>> {
        Ok(self.wasi.table.push(Output::Print(Print::Stdout))?)
    }
}

impl stderr::Host for State {
    fn get_stderr(&mut self) -> Result<Resource<Output>> {
        Ok(self.wasi.table.push(Output::Print(Print::Stderr))?)
    }
}

impl terminal_input::Host for State {}

impl terminal_input::HostTerminalInput for State {
    fn drop(&mut self, terminal: Resource<TerminalInput>) -> Result<()> {
        self.on_none(import!("wasi:cli/terminal-input.drop"), &terminal)
    }
}

impl terminal_output::Host for State {}

impl terminal_output::HostTerminalOutput for State {
    fn drop(&mut self, terminal: Resource<TerminalOutput>) -> Result<()> {
        self.on_none(import!("wasi:cli/terminal-output.drop"), &terminal)
    }
}

impl terminal_stdin::Host for State {
    fn get_terminal_stdin(&mut self) -> Result<Option<Resource<TerminalInput>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for State {
    fn get_terminal_stdout(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for State {
    fn get_terminal_stderr(&mut self) -> Result<Option<Resource<TerminalOutput>>> {
        Ok(None)
    }
}
