//! Code that somebody else wrote: what comes of it, and how it is held to its bounds.

use longshore_tests::process::{Options, Server};
use serde_json::{Value, json};

/// What code comes to.
enum Comes {
    /// It has this value, and prints that.
    To(Value, &'static str),
    /// Its value has no JSON form, and reads so.
    ToText(&'static str),
    /// It fails, and the model reads text with this in it.
    ToNothing(&'static str),
    /// The host ends it for this reason.
    ToItsEnd(&'static str),
}

fn rows() -> Vec<(&'static str, &'static str, Comes)> {
    use Comes::{To, ToItsEnd, ToNothing, ToText};
    let python = [
        ("1 + 1", To(json!(2), "")),
        ("", To(Value::Null, "")),
        ("x = 3", To(Value::Null, "")),
        (
            "print('one')\nx = [1, 'ä']\nx",
            To(json!([1, "ä"]), "one\n"),
        ),
        ("def f(n):\n    return n * 2\n\nf(21)", To(json!(42), "")),
        ("{1, 2} - {2}", ToText("{1}")),
        ("float('nan')", ToText("nan")),
        (
            "print('a')\n\n1 / 0",
            ToNothing("line 3: ZeroDivisionError: division by zero\n\nprinted before:\na\n"),
        ),
        (
            "def f():\n    return [][1]\n\nf()",
            ToNothing("line 2: IndexError: list index out of range"),
        ),
        (
            "x = 1\ny = = 2\n",
            ToNothing("line 2: SyntaxError: invalid syntax"),
        ),
        (
            "import sys\nsys.exit('enough')",
            ToNothing("line 2: SystemExit: enough"),
        ),
        (
            "import json, math, re, datetime, statistics, itertools\nstatistics.mean(itertools.repeat(math.floor(2.5), 3))",
            To(json!(2), ""),
        ),
        (
            "import re, json, datetime\n[re.findall('[0-9]+', 'a1b22'), json.loads('[true]'), str(datetime.date(2025, 2, 28) + datetime.timedelta(1))]",
            To(json!([["1", "22"], [true], "2025-03-01"]), ""),
        ),
        (
            "open('/etc/passwd').read()",
            ToNothing("line 1: FileNotFoundError: "),
        ),
        (
            "import socket\nsocket.create_connection(('127.0.0.1', 80))",
            ToNothing("line "),
        ),
        ("while True:\n    pass", ToItsEnd("cpu-limit")),
        (
            "x = []\nwhile True:\n    x.append('x' * 10_000_000 + str(len(x)))",
            ToNothing("line 3: MemoryError"),
        ),
    ];
    let js = [
        ("1 + 1", To(json!(2), "")),
        ("", To(Value::Null, "")),
        (
            "console.log('one', { a: 1 }); [1, 'ä']",
            To(json!([1, "ä"]), "one {\"a\":1}\n"),
        ),
        ("const f = (n) => n * 2;\nf(21)", To(json!(42), "")),
        ("new Map([[1, 2]])", ToText("Map([[1,2]])")),
        ("0 / 0", ToText("NaN")),
        ("2n ** 64n", ToText("18446744073709551616")),
        (
            "console.log('a')\n\nnull.x",
            ToNothing("line 3: TypeError: "),
        ),
        (
            "function f() {\n  throw new RangeError('too far');\n}\nf()",
            ToNothing("line 2: RangeError: too far"),
        ),
        (
            "let x = 1;\nlet y = = 2;\n",
            ToNothing("line 2: SyntaxError: "),
        ),
        ("throw 'enough'", ToNothing("enough")),
        ("Promise.resolve(1)", ToNothing("the value is a promise")),
        (
            "JSON.stringify([Math.max(1, 2), /b+/.exec('abb')[0]])",
            To(json!("[2,\"bb\"]"), ""),
        ),
        ("require('fs')", ToNothing("line 1: ReferenceError: ")),
        (
            "fetch('http://127.0.0.1/')",
            ToNothing("line 1: ReferenceError: "),
        ),
        ("for (;;);", ToItsEnd("cpu-limit")),
        (
            "const x = [];\nfor (;;) x.push('x'.repeat(10_000_000) + x.length);",
            ToNothing("line 2: InternalError: out of memory"),
        ),
    ];
    let python = python
        .into_iter()
        .map(|(code, comes)| ("run-python", code, comes));
    let js = js.into_iter().map(|(code, comes)| ("run-js", code, comes));
    python.chain(js).collect()
}

#[tokio::test]
async fn code_gives_its_value_what_it_printed_or_the_line_where_it_failed() {
    let options = Options::with_guests(&["run-python", "run-js"])
        .set("inline_budget_ms", 120_000)
        .set("limits.cpu_ms", 3_000);
    let server = Server::start(options).await;
    let client = server.client();
    let mut faults = Vec::new();
    for (tool, code, comes) in rows() {
        let call = json!({ "name": tool, "arguments": { "code": code } });
        let answer = client
            .send("tools/call", call)
            .await
            .expect("the server answers")
            .json();
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let data = &result["structuredContent"];
        let is_fine = match &comes {
            Comes::To(value, printed) => *data == json!({ "value": value, "printed": printed }),
            Comes::ToText(repr) => *data == json!({ "repr": repr, "printed": "" }),
            Comes::ToNothing(says) => result["isError"] == true && text.contains(says),
            Comes::ToItsEnd(reason) => answer["error"]["data"]["reason"] == *reason,
        };
        if !is_fine {
            faults.push(format!("{tool} {code:?}: {answer}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn nothing_of_one_piece_of_code_is_left_for_the_next() {
    let server = Server::start(Options::with_guests(&["run-python", "run-js"])).await;
    let client = server.client();
    for (tool, leaves, looks) in [
        (
            "run-python",
            "import math, builtins\nmath.left = builtins.left = 1",
            "import math, builtins\nhasattr(math, 'left') or hasattr(builtins, 'left')",
        ),
        (
            "run-js",
            "globalThis.left = Math.left = 1; var also = 1; 0",
            "'left' in globalThis || 'left' in Math || 'also' in globalThis",
        ),
    ] {
        client.call(tool, json!({ "code": leaves })).await;
        let seen = client.call(tool, json!({ "code": looks })).await;
        assert_eq!(seen["structuredContent"]["value"], false, "{tool}: {seen}");
    }
}
