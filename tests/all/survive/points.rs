//! Every example whose runs are recorded goes on rightly from every record at which its server may die.

use longshore_tests::guests;
use longshore_tests::process::{command, run};
use serde_json::Value;

async fn tried(arguments: &[&str]) -> (i32, Value, String) {
    let data = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = command(data.path());
    command.arg("test").args(arguments).arg("--json");
    let (code, out, errors) = run(command).await;
    (
        code,
        serde_json::from_str(&out).unwrap_or(Value::Null),
        errors,
    )
}

#[tokio::test]
async fn every_example_goes_on_from_every_point() {
    let examples: [(&str, &[&str]); 14] = [
        ("hello", &["--arg", "name=Ada"]),
        ("long-job", &["--arg", "steps=6", "--arg", "step-ms=10"]),
        ("ask-form", &[]),
        ("ask-two", &[]),
        ("approve", &["--arg", "what=it"]),
        ("sleep", &["--arg", "seconds=60"]),
        ("count-words", &["--arg", "text=one two three"]),
        ("dice", &[]),
        ("steps", &["--arg", "n=4"]),
        ("resumable", &["--arg", "n=4"]),
        ("cleanup", &[]),
        ("grind", &["--arg", "units=2"]),
        ("counter", &["--arg", "times=4"]),
        ("notes", &["--arg", "notes=[\"a\",\"b\"]"]),
    ];
    let mut points = 0;
    for (name, arguments) in examples {
        let component = guests::component(name);
        let mut all = vec![
            component.to_str().expect("a path of text"),
            "--schedules",
            "8",
        ];
        all.extend(arguments);
        let (code, report, errors) = tried(&all).await;
        assert_eq!(code, 0, "{name}: {report:#} {errors}");
        assert_eq!(report["holds"], true, "{name}: {report:#}");
        points += report["crashPoints"].as_u64().expect("points are counted");
    }
    println!("{points} crash points, 0 violations");
    assert!(points > 300, "{points}");
}

#[tokio::test]
async fn what_cannot_be_tried_is_said() {
    let hello = guests::component("hello");
    let hello = hello.to_str().expect("a path of text");
    let (code, _, errors) = tried(&[hello]).await;
    assert_eq!(code, 2, "the argument is missing: {errors}");
    let (code, _, errors) = tried(&[hello, "--arg", "name=Ada", "--answer", "nothing"]).await;
    assert_eq!(code, 2, "{errors}");
    // A server that records nothing has nothing to go on from.
    let (code, report, _) = tried(&[hello, "--arg", "name=Ada", "--set", "durable=false"]).await;
    assert_eq!(code, 1, "{report:#}");
    assert_eq!(report["volatile"].as_array().map(Vec::len), Some(1));
}
