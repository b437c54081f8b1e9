//! A tool that prints more than anybody reads.

use std::io::{self, Write};

use longshore_guest::{Description, Outcome, Tool};
use serde_json::json;

/// A line with its end.
const LINE: usize = 64;

struct Flood;

#[derive(serde::Deserialize)]
struct Arguments {
    bytes: usize,
}

impl Tool for Flood {
    const NAME: &'static str = "flood";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Prints a number of bytes to standard output, and as many to standard error.",
            input: json!({
                "type": "object",
                "properties": {
                    "bytes": { "type": "integer", "minimum": 0, "maximum": u32::MAX, "description": "How many." },
                },
                "required": ["bytes"],
            }),
            ..Description::default()
        }
    }

    fn call(Arguments { bytes }: Arguments) -> Outcome {
        print(&mut io::stdout().lock(), b'o', bytes)?;
        print(&mut io::stderr().lock(), b'e', bytes)?;
        Ok(format!("printed {bytes} bytes").into())
    }
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

longshore_guest::export!(Flood);
