//! Functions of a component's own types: what they become, and that every value comes back as it went.

use longshore_policy::limits::Limits;
use serde_json::{Value, json};

use super::kit::{PATIENCE, fault_of, fit, report, run_of, sandbox};
use crate::ending::{Ended, Ending, FaultKind, ToolResult};
use crate::offer::{Offer, Shape};
use crate::refusal::Reason;
use crate::sandbox::{Prepared, Run, Sandbox};
use crate::target::Target;

/// A type as WIT has it.
#[derive(Clone, Debug)]
enum Kind {
    /// One that is written as its name, and is as many values of the core as that says.
    Plain(&'static str, &'static str),
    List(Box<Kind>),
    Option(Box<Kind>),
    Result(Option<Box<Kind>>, Option<Box<Kind>>),
    Tuple(Vec<Kind>),
    Record(Vec<Kind>),
    Variant(Vec<Option<Kind>>),
    Enum(usize),
    Flags(usize),
}

const PLAIN: [Kind; 13] = [
    Kind::Plain("bool", "i32"),
    Kind::Plain("s8", "i32"),
    Kind::Plain("u8", "i32"),
    Kind::Plain("s16", "i32"),
    Kind::Plain("u16", "i32"),
    Kind::Plain("s32", "i32"),
    Kind::Plain("u32", "i32"),
    Kind::Plain("s64", "i64"),
    Kind::Plain("u64", "i64"),
    Kind::Plain("f32", "f32"),
    Kind::Plain("f64", "f64"),
    Kind::Plain("char", "i32"),
    Kind::Plain("string", ""),
];

/// Chance that comes again.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn kind(&mut self, depth: usize) -> Kind {
        let kinds = if depth == 0 { 3 } else { 10 };
        match self.below(kinds) {
            0 => PLAIN[self.below(PLAIN.len())].clone(),
            1 => Kind::Enum(1 + self.below(5)),
            2 => Kind::Flags(1 + self.below(32)),
            3 => Kind::List(Box::new(self.kind(depth - 1))),
            4 | 5 => Kind::Option(Box::new(self.kind(depth - 1))),
            6 => {
                let mut side = || (self.below(3) > 0).then(|| Box::new(self.kind(depth - 1)));
                Kind::Result(side(), side())
            }
            7 => Kind::Tuple((0..=self.below(3)).map(|_| self.kind(depth - 1)).collect()),
            8 => Kind::Record((0..=self.below(3)).map(|_| self.kind(depth - 1)).collect()),
            _ => {
                let mut case = || (self.below(3) > 0).then(|| self.kind(depth - 1));
                Kind::Variant((0..4).map(|_| case()).collect())
            }
        }
    }

    fn whole(&mut self, least: i128, most: i128) -> Value {
        let span = u128::try_from(most - least).unwrap() + 1;
        let any = i128::try_from(u128::from(self.next()) % span).unwrap();
        let chosen = [least, most, 0, 1, least + any, least + any][self.below(6)].max(least);
        match u64::try_from(chosen) {
            Ok(whole) => whole.into(),
            Err(_) => i64::try_from(chosen).unwrap().into(),
        }
    }

    fn text(&mut self) -> String {
        let chars = [
            'a',
            '"',
            '\\',
            '\n',
            '\0',
            'ä',
            '\u{fffd}',
            '😀',
            '\u{10ffff}',
            '\u{7f}',
        ];
        (0..self.below(6))
            .map(|_| chars[self.below(chars.len())])
            .collect()
    }

    /// A value in the one form in which it is written.
    fn value(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Plain(name, _) => match *name {
                "bool" => (self.below(2) == 0).into(),
                "s8" => self.whole(i8::MIN.into(), i8::MAX.into()),
                "u8" => self.whole(0, u8::MAX.into()),
                "s16" => self.whole(i16::MIN.into(), i16::MAX.into()),
                "u16" => self.whole(0, u16::MAX.into()),
                "s32" => self.whole(i32::MIN.into(), i32::MAX.into()),
                "u32" => self.whole(0, u32::MAX.into()),
                "s64" => self.whole(i64::MIN.into(), i64::MAX.into()),
                "u64" => self.whole(0, u64::MAX.into()),
                "f32" => {
                    let bits = u32::try_from(self.next() >> 32).unwrap();
                    let number =
                        [f32::from_bits(bits), f32::MIN_POSITIVE / 4.0, 0.1, -0.0][self.below(4)];
                    no_number(number.into()).unwrap_or_else(|| {
                        serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap()
                    })
                }
                "f64" => {
                    let number = [f64::from_bits(self.next()), f64::NAN, 0.1, -0.0][self.below(4)];
                    no_number(number).unwrap_or_else(|| number.into())
                }
                "char" => ["a", "😀", "\0", "\""][self.below(4)].into(),
                _ => self.text().into(),
            },
            Kind::List(inner) if matches!(**inner, Kind::Plain("u8", _)) => {
                use base64::Engine as _;
                let bytes: Vec<u8> = (0..self.below(50))
                    .map(|_| self.next().to_le_bytes()[0])
                    .collect();
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into()
            }
            Kind::List(inner) => (0..self.below(4)).map(|_| self.value(inner)).collect(),
            Kind::Option(_) if self.below(3) == 0 => Value::Null,
            Kind::Option(inner) => {
                let value = self.value(inner);
                if matches!(**inner, Kind::Option(_)) {
                    json!({ "some": value })
                } else {
                    value
                }
            }
            Kind::Result(ok, err) => {
                let mut side = |kind: &Option<Box<Kind>>| {
                    kind.as_ref().map_or(Value::Null, |kind| self.value(kind))
                };
                let (ok, err) = (side(ok), side(err));
                if self.below(2) == 0 {
                    json!({ "ok": ok })
                } else {
                    json!({ "err": err })
                }
            }
            Kind::Tuple(parts) => parts.iter().map(|part| self.value(part)).collect(),
            Kind::Record(parts) => {
                let fields = parts.iter().enumerate();
                fields
                    .map(|(index, part)| (format!("f{index}"), self.value(part)))
                    .collect()
            }
            Kind::Variant(cases) => {
                let chosen = self.below(cases.len());
                let name = format!("c{chosen}");
                match &cases[chosen] {
                    Some(payload) => json!({ name: self.value(payload) }),
                    None => name.into(),
                }
            }
            Kind::Enum(count) => format!("n{}", self.below(*count)).into(),
            Kind::Flags(count) => (0..*count)
                .filter(|_| self.below(2) == 0)
                .map(|index| Value::from(format!("n{index}")))
                .collect(),
        }
    }
}

fn no_number(number: f64) -> Option<Value> {
    match number {
        number if number.is_nan() => Some("NaN".into()),
        f64::INFINITY => Some("Infinity".into()),
        f64::NEG_INFINITY => Some("-Infinity".into()),
        _ => None,
    }
}

/// A component whose functions hand back what they are given. A function with one core value for its argument returns
/// that; any other gets its arguments by address, since there are too many for the stack, and returns that address.
#[derive(Default)]
struct Echo {
    types: String,
    core: String,
    lifts: String,
    named: usize,
    functions: usize,
}

impl Echo {
    /// How a type is written where it is used. What has names of its own is defined and exported first.
    fn write(&mut self, kind: &Kind) -> String {
        let list = |parts: Vec<String>| parts.join(" ");
        let shape = match kind {
            Kind::Plain(name, _) => return (*name).to_owned(),
            Kind::List(inner) => return format!("(list {})", self.write(inner)),
            Kind::Option(inner) => return format!("(option {})", self.write(inner)),
            Kind::Result(ok, err) => {
                let ok = ok.as_ref().map(|kind| self.write(kind)).unwrap_or_default();
                let err = err
                    .as_ref()
                    .map(|kind| format!("(error {})", self.write(kind)));
                return format!("(result {ok} {})", err.unwrap_or_default());
            }
            Kind::Tuple(parts) => {
                return format!(
                    "(tuple {})",
                    list(parts.iter().map(|part| self.write(part)).collect())
                );
            }
            Kind::Record(parts) => {
                let fields = parts.iter().enumerate();
                let fields = fields
                    .map(|(index, part)| format!("(field \"f{index}\" {})", self.write(part)));
                format!("(record {})", list(fields.collect()))
            }
            Kind::Variant(cases) => {
                let cases = cases.iter().enumerate().map(|(index, payload)| {
                    let payload = payload.as_ref().map(|kind| self.write(kind));
                    format!("(case \"c{index}\" {})", payload.unwrap_or_default())
                });
                format!("(variant {})", list(cases.collect()))
            }
            Kind::Enum(count) => {
                format!(
                    "(enum {})",
                    list((0..*count).map(|index| format!("\"n{index}\"")).collect())
                )
            }
            Kind::Flags(count) => {
                format!(
                    "(flags {})",
                    list((0..*count).map(|index| format!("\"n{index}\"")).collect())
                )
            }
        };
        let name = self.named;
        self.named += 1;
        self.types.push_str(&format!(
            "(type $d{name} {shape}) (export $t{name} \"t{name}\" (type $d{name}))\n"
        ));
        format!("$t{name}")
    }

    fn function(&mut self, kind: &Kind) {
        let written = self.write(kind);
        let name = format!("f{}", self.functions);
        self.functions += 1;
        let (pad, params, takes) = match core(kind).as_slice() {
            [only] => ("", "", *only),
            _ => ("(param \"pad\" (option $pad))", "", "i32"),
        };
        self.core.push_str(&format!(
            "(func (export \"{name}\") (param {takes}) (result {takes}) {params} (local.get 0))\n"
        ));
        self.lifts.push_str(&format!(
            "(func (export \"{name}\") (param \"v\" {written}) {pad} (result {written})
               (canon lift (core func $m \"{name}\") (memory $memory) (realloc $realloc)))\n"
        ));
    }

    fn text(&self) -> String {
        let Self {
            types, core, lifts, ..
        } = self;
        format!(
            "(component
              (core module $m
                (memory (export \"memory\") 4)
                (global $next (mut i32) (i32.const 1024))
                (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (local i32)
                  (local.set 4 (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
                  (global.set $next (i32.add (local.get 4) (local.get 3)))
                  (local.get 4))
                {core})
              (core instance $m (instantiate $m))
              (alias core export $m \"memory\" (core memory $memory))
              (alias core export $m \"realloc\" (core func $realloc))
              (type $pad (tuple u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 u64))
              {types} {lifts})"
        )
    }
}

/// The core values that a type is passed as.
fn core(kind: &Kind) -> Vec<&'static str> {
    let tagged = |cases: Vec<Vec<&'static str>>| {
        let mut all = vec!["i32"];
        let most = cases.iter().map(Vec::len).max().unwrap_or(0);
        all.extend(std::iter::repeat_n("any", most));
        all
    };
    let boxed = |kind: &Option<Box<Kind>>| kind.as_ref().map(|kind| core(kind)).unwrap_or_default();
    match kind {
        Kind::Plain("string", _) | Kind::List(_) => vec!["i32", "i32"],
        Kind::Plain(_, core) => vec![core],
        Kind::Option(inner) => tagged(vec![core(inner)]),
        Kind::Result(ok, err) => tagged(vec![boxed(ok), boxed(err)]),
        Kind::Tuple(parts) | Kind::Record(parts) => parts.iter().flat_map(core).collect(),
        Kind::Variant(cases) => tagged(
            cases
                .iter()
                .map(|case| case.as_ref().map(core).unwrap_or_default())
                .collect(),
        ),
        Kind::Enum(_) => vec!["i32"],
        Kind::Flags(count) => vec!["i32"; count.div_ceil(32)],
    }
}

async fn listed(sandbox: &Sandbox, prepared: &Prepared) -> Offer {
    let limits = Limits::default();
    let listing = sandbox.list(prepared, "guest", &limits);
    let listed = tokio::time::timeout(PATIENCE, listing).await;
    listed.expect("it ends").unwrap()
}

async fn called(sandbox: &Sandbox, prepared: &Prepared, name: &str, arguments: &str) -> Ended {
    let target = Target::Tool {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let run = Run {
        target,
        ..run_of(prepared.clone())
    };
    report(sandbox.start(run).ended).await
}

fn structured(ended: Ended) -> Value {
    match ended.ending {
        Ending::Returned(ToolResult { structured, .. }) => {
            serde_json::from_str(&structured.unwrap()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn failed(ended: Ended) -> (Value, ToolResult) {
    match ended.ending {
        Ending::ToolFailed(result) => {
            let structured = result.structured.as_deref().unwrap();
            (serde_json::from_str(structured).unwrap(), result)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_value_of_every_type_comes_back_as_it_went() {
    let sandbox = sandbox(1);
    let mut chance = Chance(0x5eed);
    let mut kinds: Vec<Kind> = PLAIN.to_vec();
    kinds.push(Kind::List(Box::new(Kind::Plain("u8", "i32"))));
    kinds.push(Kind::Flags(32));
    kinds.push(Kind::Option(Box::new(Kind::Option(Box::new(Kind::Plain(
        "u8", "i32",
    ))))));
    while kinds.len() < 100 {
        let kind = chance.kind(3);
        // A result by itself is what a function answers or how it fails, which is a test of its own.
        if !matches!(kind, Kind::Result(..)) {
            kinds.push(kind);
        }
    }
    let mut echo = Echo::default();
    kinds.iter().for_each(|kind| echo.function(kind));
    let prepared = fit(&sandbox, &echo.text()).unwrap();
    let offer = listed(&sandbox, &prepared).await;
    assert_eq!((offer.shape, offer.tools.len()), (Shape::Library, 100));
    assert_eq!(offer.left_out, []);
    for (index, kind) in kinds.iter().enumerate() {
        let name = format!("f{index}");
        let tool = offer.tools.iter().find(|tool| tool.name == name).unwrap();
        let schema: Value = serde_json::from_str(&tool.input_schema).unwrap();
        assert!(schema["properties"]["v"].is_object(), "{schema}");
        for _ in 0..8 {
            let value = chance.value(kind);
            let arguments = json!({ "v": value }).to_string();
            let ended = called(&sandbox, &prepared, &name, &arguments).await;
            let back = structured(ended);
            let back = if matches!(kind, Kind::Record(_)) {
                back
            } else {
                back["result"].clone()
            };
            assert_eq!(back.to_string(), value.to_string(), "{kind:?}");
        }
    }
}

/// Functions by hand: `$at` is where the component keeps what they return.
fn library(types: &str, core: &str, lifts: &str) -> String {
    format!(
        "(component
          (core module $m
            (memory (export \"memory\") 1)
            (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 4096))
            {core})
          (core instance $m (instantiate $m))
              (alias core export $m \"memory\" (core memory $memory))
              (alias core export $m \"realloc\" (core func $realloc))
          {types} {lifts})"
    )
}

fn lift(name: &str, kind: &str) -> String {
    format!(
        "(func (export \"{name}\") {kind} (canon lift (core func $m \"{name}\") (memory $memory)
           (realloc $realloc)))"
    )
}

#[tokio::test]
async fn what_a_function_returns_as_an_error_is_the_error_of_a_tool() {
    let sandbox = sandbox(1);
    let core = r#"
        (data (i32.const 16) "no such thing")
        (func (export "fail") (result i32)
          (i32.store8 (i32.const 1024) (i32.const 1))
          (i32.store (i32.const 1028) (i32.const 16))
          (i32.store (i32.const 1032) (i32.const 13))
          (i32.const 1024))
        (func (export "work") (result i32)
          (i32.store8 (i32.const 1024) (i32.const 0))
          (i32.store (i32.const 1028) (i32.const 7))
          (i32.const 1024))
        (func (export "bare") (result i32) (i32.const 1))
        (func (export "nothing"))"#;
    let text = library(
        "",
        core,
        &[
            lift("fail", "(result (result u32 (error string)))"),
            lift("work", "(result (result u32 (error string)))"),
            lift("bare", "(result (result))"),
            lift("nothing", ""),
        ]
        .concat(),
    );
    let prepared = fit(&sandbox, &text).unwrap();
    let (error, result) = failed(called(&sandbox, &prepared, "fail", "{}").await);
    assert_eq!(error, json!({ "error": "no such thing" }));
    assert_eq!(
        result.content,
        [crate::ending::Block::Text("no such thing".to_owned())]
    );
    let (error, _) = failed(called(&sandbox, &prepared, "bare", "{}").await);
    assert_eq!(error, json!({ "error": null }));
    for (name, result) in [("work", json!(7)), ("nothing", Value::Null)] {
        let back = structured(called(&sandbox, &prepared, name, "{}").await);
        assert_eq!(back, json!({ "result": result }));
    }
    let tools = listed(&sandbox, &prepared).await.tools;
    let described: Vec<&str> = tools.iter().map(|tool| tool.description.as_str()).collect();
    assert_eq!(
        described,
        [
            "fail: func() -> result<u32, string>",
            "work: func() -> result<u32, string>",
            "bare: func() -> result",
            "nothing: func()"
        ]
    );
}

#[tokio::test]
async fn schemas_say_what_types_are() {
    let sandbox = sandbox(1);
    let kinds = [
        (
            "u8",
            json!({ "type": "integer", "minimum": 0, "maximum": 255 }),
        ),
        (
            "s64",
            json!({
                "type": ["integer", "string"], "minimum": i64::MIN, "maximum": i64::MAX, "pattern": "^-?[0-9]{1,20}$",
            }),
        ),
        (
            "f32",
            json!({ "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }] }),
        ),
        (
            "char",
            json!({ "type": "string", "minLength": 1, "maxLength": 1 }),
        ),
        (
            "(list u8)",
            json!({ "type": "string", "contentEncoding": "base64" }),
        ),
        (
            "(list bool)",
            json!({ "type": "array", "items": { "type": "boolean" } }),
        ),
        (
            "(tuple bool string)",
            json!({
                "type": "array", "prefixItems": [{ "type": "boolean" }, { "type": "string" }], "items": false,
                "minItems": 2, "maxItems": 2,
            }),
        ),
        (
            "$v",
            json!({ "oneOf": [{ "const": "none" }, {
                "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"],
                "additionalProperties": false,
            }] }),
        ),
        ("$e", json!({ "type": "string", "enum": ["a", "b"] })),
        (
            "$f",
            json!({ "type": "array", "items": { "type": "string", "enum": ["x", "y"] }, "uniqueItems": true }),
        ),
        (
            "$r",
            json!({
                "type": "object",
                "properties": { "a": { "type": "boolean" }, "b": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
                "required": ["a"],
                "additionalProperties": false,
            }),
        ),
        (
            "(option (option bool))",
            json!({ "anyOf": [{
                "type": "object",
                "properties": { "some": { "anyOf": [{ "type": "boolean" }, { "type": "null" }] } },
                "required": ["some"],
                "additionalProperties": false,
            }, { "type": "null" }] }),
        ),
    ];
    let types = r#"
        (type $vd (variant (case "none") (case "word" string))) (export $v "v" (type $vd))
        (type $ed (enum "a" "b")) (export $e "e" (type $ed))
        (type $fd (flags "x" "y")) (export $f "f" (type $fd))
        (type $rd (record (field "a" bool) (field "b" (option string)))) (export $r "r" (type $rd))"#;
    let params: String = kinds
        .iter()
        .enumerate()
        .map(|(index, (kind, _))| format!("(param \"p{index}\" {kind})"))
        .collect();
    let core = r#"(func (export "all") (param i32) unreachable)"#;
    let text = library(types, core, &lift("all", &params));
    let prepared = fit(&sandbox, &text).unwrap();
    let offer = listed(&sandbox, &prepared).await;
    let [tool] = offer.tools.as_slice() else {
        panic!("{offer:?}")
    };
    let schema: Value = serde_json::from_str(&tool.input_schema).unwrap();
    for (index, (kind, expected)) in kinds.iter().enumerate() {
        assert_eq!(
            schema["properties"][format!("p{index}")],
            *expected,
            "{kind}"
        );
    }
    let required: Vec<String> = (0..11).map(|index| format!("p{index}")).collect();
    assert_eq!(
        schema["required"],
        json!(required),
        "an option may be left out"
    );
    assert_eq!(schema["additionalProperties"], false);
    let output: Value = serde_json::from_str(tool.output_schema.as_deref().unwrap()).unwrap();
    assert_eq!(output["properties"]["result"], json!({ "type": "null" }));
}

#[tokio::test]
async fn what_cannot_be_an_argument_is_told_with_its_place() {
    let sandbox = sandbox(1);
    let mut echo = Echo::default();
    let record = Kind::Record(vec![Kind::List(Box::new(Kind::Plain("s8", "i32")))]);
    let long = Kind::Plain("u64", "i64");
    let bytes = Kind::List(Box::new(Kind::Plain("u8", "i32")));
    let (flags, option) = (
        Kind::Flags(3),
        Kind::Option(Box::new(Kind::Option(Box::new(long.clone())))),
    );
    for kind in [&record, &long, &bytes, &flags, &option] {
        echo.function(kind);
    }
    let prepared = fit(&sandbox, &echo.text()).unwrap();
    let rows = [
        (
            "f0",
            json!({ "v": { "f0": [1, 128] } }),
            "arguments.v.f0[1]: not an integer of its type",
        ),
        (
            "f0",
            json!({ "v": { "f0": [1.5] } }),
            "arguments.v.f0[0]: not an integer of its type",
        ),
        (
            "f0",
            json!({ "v": { "f0": [], "x": 1 } }),
            "arguments.v: there is no \"x\"",
        ),
        ("f0", json!({}), "arguments.v: it is missing"),
        ("f0", json!([]), "arguments: not an object"),
        (
            "f1",
            json!({ "v": -1 }),
            "arguments.v: not an integer of its type",
        ),
        (
            "f1",
            json!({ "v": 18_446_744_073_709_551_616.0 }),
            "arguments.v: not an integer of its type",
        ),
        (
            "f1",
            json!({ "v": "18446744073709551616" }),
            "arguments.v: not an integer of its type",
        ),
        ("f2", json!({ "v": "?" }), "arguments.v: not base64"),
        (
            "f3",
            json!({ "v": ["n1", "n1"] }),
            "arguments.v: \"n1\" stands twice",
        ),
        (
            "f3",
            json!({ "v": ["n3"] }),
            "arguments.v: there is no \"n3\"",
        ),
        (
            "f4",
            json!({ "v": 1 }),
            "arguments.v: neither null nor an object with \"some\"",
        ),
    ];
    for (name, arguments, says) in rows {
        let (error, _) = failed(called(&sandbox, &prepared, name, &arguments.to_string()).await);
        let error = error["error"].as_str().unwrap();
        assert!(error.starts_with(says), "{error}");
    }
    // A writer of JSON that rounds large numbers can give them as text.
    for given in [json!(u64::MAX), json!("18446744073709551615")] {
        let ended = called(
            &sandbox,
            &prepared,
            "f1",
            &json!({ "v": given }).to_string(),
        )
        .await;
        assert_eq!(structured(ended), json!({ "result": u64::MAX }));
    }
    let whole = called(&sandbox, &prepared, "f1", r#"{"v": 3.0}"#).await;
    assert_eq!(structured(whole), json!({ "result": 3 }));
}

#[tokio::test]
async fn a_hostile_result_ends_its_own_run_with_a_line() {
    let sandbox = sandbox(1);
    let pair = |name: &str, pointer: u32, length: u32| {
        format!(
            "(func (export \"{name}\") (result i32)
               (i32.store (i32.const 1024) (i32.const {pointer}))
               (i32.store (i32.const 1028) (i32.const {length}))
               (i32.const 1024))"
        )
    };
    let core = [
        pair("long", 0, u32::MAX),
        pair("items", 0, 1 << 28),
        pair("text", 2048, 2),
        pair("large", 0, 60_000),
        r#"(data (i32.const 2048) "\c3\28")
           (func (export "choice") (result i32) (i32.store8 (i32.const 1024) (i32.const 9)) (i32.const 1024))
           (func (export "char") (result i32) (i32.const 0xd800))
           (func (export "trap") unreachable)"#
            .to_owned(),
    ]
    .concat();
    let types = r#"(type $vd (variant (case "a" u32) (case "b"))) (export $v "v" (type $vd))"#;
    let lifts = [
        lift("long", "(result (list u8))"),
        lift("items", "(result (list (tuple u64 u64)))"),
        lift("text", "(result string)"),
        lift("large", "(result (list u16))"),
        lift("choice", "(result $v)"),
        lift("char", "(result char)"),
        lift("trap", ""),
    ]
    .concat();
    let prepared = fit(&sandbox, &library(types, &core, &lifts)).unwrap();
    for (name, kind, says) in [
        ("long", FaultKind::BadOutput, "out of bounds"),
        ("items", FaultKind::BadOutput, "out of bounds"),
        ("text", FaultKind::BadOutput, "utf-8"),
        ("large", FaultKind::BadOutput, "out of bounds"),
        ("choice", FaultKind::BadOutput, "discriminant"),
        ("char", FaultKind::BadOutput, ""),
        ("trap", FaultKind::Trap, "unreachable"),
    ] {
        let (found, message) = fault_of(called(&sandbox, &prepared, name, "{}").await);
        assert_eq!(found, kind, "{name}: {message}");
        assert!(message.contains(says), "{name}: {message}");
    }
}

#[tokio::test]
async fn a_result_is_as_large_as_one_may_be_and_no_larger() {
    let sandbox = sandbox(1);
    // Two million and a half bytes of base64 do not fit, three quarters of a million of bytes do.
    let core = |bytes: u32| {
        format!(
            "(memory (export \"memory2\") 16)
             (func (export \"bytes\") (result i32)
               (i32.store (i32.const 1024) (i32.const 0))
               (i32.store (i32.const 1028) (i32.const {bytes}))
               (i32.const 1024))"
        )
    };
    let text = |bytes| {
        library("", &core(bytes), &lift("bytes", "(result (list u8))"))
            .replace("(memory (export \"memory2\") 16)", "")
            .replace(
                "(memory (export \"memory\") 1)",
                "(memory (export \"memory\") 16)",
            )
    };
    // {"result":"…"} has thirteen bytes around the text.
    let most = (1 << 20) - 16;
    let fits = fit(&sandbox, &text(most / 4 * 3)).unwrap();
    let back = structured(called(&sandbox, &fits, "bytes", "{}").await);
    assert_eq!(
        back["result"].as_str().map(str::len),
        Some(most as usize / 4 * 4)
    );
    let over = fit(&sandbox, &text(most / 4 * 3 + 3)).unwrap();
    let (kind, message) = fault_of(called(&sandbox, &over, "bytes", "{}").await);
    assert_eq!(kind, FaultKind::OutputLimit, "{message}");
}

#[tokio::test]
async fn functions_that_cannot_be_tools_are_left_out_with_the_reason() {
    let sandbox = sandbox(1);
    let text = r#"(component
        (core module $m (func (export "f") (param i32)) (func (export "g")))
        (core instance $m (instantiate $m))
        (type $t (resource (rep i32)))
        (export $r "r" (type $t))
        (func $f (param "x" (own $r)) (canon lift (core func $m "f")))
        (func $g (canon lift (core func $m "g")))
        (export "with-handle" (func $f))
        (instance $i (export "g" (func $g)))
        (export "a:b/c@1.0.0" (instance $i))
        (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#;
    let offer = listed(&sandbox, &fit(&sandbox, text).unwrap()).await;
    let names: Vec<&str> = offer.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["g"]);
    assert_eq!(offer.tools[0].description, "g: func() of a:b/c@1.0.0");
    assert_eq!(offer.left_out.len(), 1);
    assert_eq!(offer.left_out[0].function, "with-handle");
    assert!(offer.left_out[0].why.contains("handles"), "{offer:?}");

    let none = text.replace(r#"(export "a:b/c@1.0.0" (instance $i))"#, "");
    let refusal = fit(&sandbox, &none).err().unwrap();
    assert_eq!(refusal.reason, Reason::World);
    assert!(
        refusal
            .message
            .contains("`with-handle` cannot, since it uses handles"),
        "{refusal}"
    );
}

#[tokio::test]
async fn as_many_functions_are_tools_as_a_component_may_have() {
    let sandbox = sandbox(1);
    let text = |count: usize| {
        let exports: String = (0..count)
            .map(|index| format!("(export \"f{index}\" (func $g))"))
            .collect();
        format!(
            "(component
               (core module $m (func (export \"g\")))
               (core instance $m (instantiate $m))
               (func $g (canon lift (core func $m \"g\")))
               (instance $i {exports})
               (export \"a:b/c\" (instance $i)))"
        )
    };
    let offer = listed(&sandbox, &fit(&sandbox, &text(128)).unwrap()).await;
    assert_eq!(offer.tools.len(), 128);
    for count in [129, 10_000] {
        let refusal = fit(&sandbox, &text(count)).err().unwrap();
        assert_eq!(refusal.reason, Reason::TooManyFunctions);
        assert!(refusal.message.contains(&count.to_string()), "{refusal}");
    }
}

#[tokio::test]
async fn a_type_that_is_huge_once_it_is_written_out_leaves_its_function_out() {
    let sandbox = sandbox(1);
    // Each is two of the one before: a thousand times a thousand in twenty lines.
    let text = |levels: usize| {
        let types: String = (1..=levels)
            .map(|level| format!("(type $t{level} (tuple $t{} $t{}))", level - 1, level - 1))
            .collect();
        format!(
            "(component
               (core module $m (func (export \"f\") (param i32)) (func (export \"g\"))
                 (memory (export \"memory\") 1)
                 (func (export \"realloc\") (param i32 i32 i32 i32) (result i32) (i32.const 0)))
               (core instance $m (instantiate $m))
              (alias core export $m \"memory\" (core memory $memory))
              (alias core export $m \"realloc\" (core func $realloc))
               (type $t0 (tuple u8 u8)) {types}
               (func (export \"f\") (param \"x\" $t{levels})
                 (canon lift (core func $m \"f\") (memory $memory) (realloc $realloc)))
               (func (export \"g\") (canon lift (core func $m \"g\"))))"
        )
    };
    for (levels, tools) in [(8, 2), (12, 1)] {
        let offer = listed(&sandbox, &fit(&sandbox, &text(levels)).unwrap()).await;
        assert_eq!(offer.tools.len(), tools, "{levels}");
        assert_eq!(offer.left_out.len(), 2 - tools);
    }
}

#[tokio::test]
async fn what_an_author_wrote_describes_the_tool_unless_it_cannot_be_read() {
    let sandbox = sandbox(1);
    let text = |section: &str| {
        format!(
            "(component
               (core module $m (func (export \"g\")))
               (core instance $m (instantiate $m))
               (func $g (canon lift (core func $m \"g\")))
               (instance $i (export \"g\" (func $g)))
               (export \"a:b/c@1.0.0\" (instance $i))
               (@custom \"package-docs\" \"{section}\"))"
        )
    };
    let described = async |section: &str| {
        let prepared = fit(&sandbox, &text(section)).unwrap();
        listed(&sandbox, &prepared)
            .await
            .tools
            .remove(0)
            .description
    };
    let good =
        r#"\01{\22interfaces\22:{\22c\22:{\22funcs\22:{\22g\22:{\22docs\22:\22Goes.\22}}}}}"#;
    assert_eq!(described(good).await, "Goes.");
    for bad in [
        "",
        r"\02{}",
        r"\01{",
        r"\01\ff",
        &format!(r"\01{}", "[".repeat(100_000)),
    ] {
        assert_eq!(described(bad).await, "g: func() of a:b/c@1.0.0");
    }
}
