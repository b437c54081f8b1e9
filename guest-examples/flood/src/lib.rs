//! A tool that prints more than anybody reads.

use std::io::{self, Write};

use longshore_guest::tool;

/// A line with its end.
const LINE: usize = 64;

/// Prints a number of bytes to standard output, and as many to standard error.
#[tool]
fn flood(
    /** How many. */
    bytes: usize,
) -> io::Result<String> {
    print(&mut io::stdout().lock(), b'o', bytes)?;
    print(&mut io::stderr().lock(), b'e', bytes)?;
    Ok(format!("printed {bytes} bytes"))
}

fn print(stream: &mut impl Write, letter: u8, bytes: usize) -> io::Result<()> {
    let mut line = [letter; LINE];
    line[LINE - 1] = b'\n';
    for _ in 0..bytes / LINE {
        stream.write_all(&line)?;
    }
    stream.write_all(&line[LINE - bytes % LINE..])?;
    stream.flush()
}
