//! A program as there are many: it counts what it reads, and nothing in it was written to be a tool.

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str =
    "Counts the lines, words and bytes of files, or of standard input if there are none.

Usage: wordcount-cli [--output FILE] [--pause MS] [FILE]...

  --output FILE  write there instead of to standard output
  --pause MS     rest so long before each file
  --help         print this
";

/// Asks whoever runs this to show the usage as the description of the tool.
#[cfg(target_family = "wasm")]
#[expect(unsafe_code, reason = "only the place of a constant is said by it")]
#[used]
#[unsafe(link_section = "longshore:manifest")]
static MANIFEST: [u8; 12] = *b"usage = true";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("wordcount-cli: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let (mut files, mut output, mut pause) = (Vec::new(), None, Duration::ZERO);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--help" => {
                print!("{USAGE}");
                return Ok(());
            }
            "--output" => output = Some(value()?),
            "--pause" => {
                let ms = value()?
                    .parse()
                    .map_err(|error| format!("{arg}: {error}"))?;
                pause = Duration::from_millis(ms);
            }
            _ if arg.starts_with('-') => return Err(format!("{arg} is not known; see --help")),
            _ => files.push(arg),
        }
    }
    let mut report = String::new();
    if files.is_empty() {
        let mut text = Vec::new();
        let read = std::io::stdin().read_to_end(&mut text);
        read.map_err(|error| format!("standard input: {error}"))?;
        report.push_str(&format!("{}\n", counts(&text)));
    }
    for file in files {
        std::thread::sleep(pause);
        let text = std::fs::read(&file).map_err(|error| format!("{file}: {error}"))?;
        report.push_str(&format!("{} {file}\n", counts(&text)));
    }
    let written = match &output {
        Some(file) => std::fs::write(file, &report),
        None => std::io::stdout().write_all(report.as_bytes()),
    };
    written.map_err(|error| {
        format!(
            "{}: {error}",
            output.as_deref().unwrap_or("standard output")
        )
    })
}

fn counts(text: &[u8]) -> String {
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let words = text
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .count();
    format!("{lines} {words} {}", text.len())
}
