//! A tool that takes memory until it has enough or is told no.

use longshore_guest::{Description, Outcome, Tool};
use serde_json::json;

const MIB: usize = 1 << 20;

struct Hog;

#[derive(serde::Deserialize)]
struct Arguments {
    mib: u32,
}

impl Tool for Hog {
    const NAME: &'static str = "hog";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Takes a number of mebibytes of memory and writes to all of it.",
            input: json!({
                "type": "object",
                "properties": {
                    "mib": { "type": "integer", "minimum": 0, "maximum": u32::MAX, "description": "How many." },
                },
                "required": ["mib"],
            }),
            ..Description::default()
        }
    }

    fn call(Arguments { mib }: Arguments) -> Outcome {
        let mut held: Vec<Vec<u8>> = Vec::new();
        for _ in 0..mib {
            let mut part = Vec::new();
            if held.try_reserve(1).is_err() || part.try_reserve_exact(MIB).is_err() {
                return Err(format!("the sandbox gave only {} MiB", held.len()).into());
            }
            // Written to, and with something other than the zeros that it holds already.
            part.resize(MIB, 1);
            held.push(part);
        }
        let bytes: usize = held.iter().flatten().map(|byte| usize::from(*byte)).sum();
        Ok(format!("held {} MiB", bytes / MIB).into())
    }
}

longshore_guest::export!(Hog);
