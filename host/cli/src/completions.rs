//! `completions`: what a shell needs to complete our command lines.

use clap_complete::Shell;
use clap_complete::generate;

use crate::exit::Failure;
use crate::print;

/// Prints completions for a shell.
///
/// For bash: `source <(longshore completions bash)`; for zsh, a file `_longshore` in a folder of
/// `$fpath`; for fish, `~/.config/fish/completions/longshore.fish`.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    shell: Known,
}

/// The shells whose completions are tried.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Known {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    pub(crate) fn print(self, command: &mut clap::Command) -> Result<(), Failure> {
        let shell = match self.shell {
            Known::Bash => Shell::Bash,
            Known::Zsh => Shell::Zsh,
            Known::Fish => Shell::Fish,
        };
        let mut script = Vec::new();
        generate(shell, command, "longshore", &mut script);
        print(&String::from_utf8_lossy(&script))
    }
}
