//! Tools that send requests, broken off at every point of a scripted world.

use longshore_tests::guests;
use longshore_tests::process::{command, run};
use serde_json::Value;

#[tokio::test]
async fn a_tool_that_sends_goes_on_rightly_from_every_point_whatever_is_done_about_doubt() {
    let data = tempfile::tempdir().expect("a folder can be made");
    let grant = data.path().join("grant.toml");
    let cases = [
        ("fetch", "ask", "GET", false, &[][..]),
        ("fetch", "fail", "GET", true, &[]),
        ("order", "ask", "POST", false, &["--arg", "n=3"]),
        ("order", "tell", "POST", false, &["--arg", "n=3"]),
        ("order", "fail", "POST", false, &["--arg", "n=3"]),
        ("order", "resend", "POST", false, &["--arg", "n=3"]),
        ("watch", "ask", "GET", false, &[]),
        (
            "watch",
            "ask",
            "GET",
            false,
            &["--arg", "pointer=/job/state", "--arg", "equals=7"],
        ),
    ];
    for (tool, in_doubt, method, writes, arguments) in cases {
        let text = format!(
            "[[http]]\nhost = \"shop.test\"\nmethods = [{method:?}]\nin_doubt = {in_doubt:?}\ntreat_as_write = {writes}\n"
        );
        std::fs::write(&grant, text).expect("it can be written");
        let mut test = command(data.path());
        test.arg("test")
            .arg(guests::component(tool))
            .arg("--grant")
            .arg(&grant)
            .args([
                "--json",
                "--schedules",
                "8",
                "--arg",
                "url=https://shop.test/",
            ])
            .args(arguments);
        let (code, out, error) = run(test).await;
        assert_eq!(code, 0, "{tool} {in_doubt}: {out}{error}");
        let report: Value = serde_json::from_str(&out).expect("it is JSON");
        assert!(report["crashPoints"].as_u64() > Some(7), "{report}");
    }
}
