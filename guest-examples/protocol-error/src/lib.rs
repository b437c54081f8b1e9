//! A tool that finds the request itself wrong.

use longshore_guest::{CallError, Description, Outcome, Tool};
use serde_json::json;

struct ProtocolError;

#[derive(serde::Deserialize)]
struct Arguments {
    code: i32,
    message: String,
}

impl Tool for ProtocolError {
    const NAME: &'static str = "protocol-error";
    type Arguments = Arguments;

    fn describe() -> Description {
        Description {
            description: "Answers with a JSON-RPC error, to show how one looks.",
            input: json!({
                "type": "object",
                "properties": {
                    "code": {
                        "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX, "description": "Its number.",
                    },
                    "message": { "type": "string", "description": "What it says." },
                },
                "required": ["code", "message"],
            }),
            ..Description::default()
        }
    }

    fn call(Arguments { code, message }: Arguments) -> Outcome {
        Err(CallError::rpc(code, message))
    }
}

longshore_guest::export!(ProtocolError);
