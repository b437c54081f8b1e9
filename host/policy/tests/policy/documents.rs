//! What people write, and what is said to what they did not mean.

use longshore_policy::grant::Grant;
use longshore_policy::limits::Limits;
use longshore_policy::manifest::Manifest;
use longshore_policy::policy::{Policy, Tenant};
use serde_json::json;

const GRANT: &str = r#"
cleanup = false

[[http]]
host = "*.example.org"
methods = ["GET", "POST"]
in_doubt = "resend"
networks = ["10.1.0.0/16"]

[[http]]
scheme = "http"
host = "127.0.0.1"
port = 8080
treat_as_write = true

[[dirs]]
guest = "/data"
host = "/srv/data"
access = "read-write"

[env]
TZ = "UTC"

[[secrets]]
name = "github"
hosts = ["api.github.com"]

[[secrets]]
name = "weather"
hosts = ["*.weather.example"]
kind = "header"
header = "X-Api-Key"

[limits]
cpu_ms = 1000
memory_mib = 128
"#;

#[test]
fn a_grant_is_what_is_written() {
    let grant = Grant::of_toml(GRANT).unwrap();
    let rules: Vec<String> = grant.http.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules,
        [
            "GET,POST https://*.example.org",
            "GET,HEAD,OPTIONS http://127.0.0.1:8080"
        ]
    );
    let secrets: Vec<String> = grant.secrets.iter().map(ToString::to_string).collect();
    assert_eq!(
        secrets,
        [
            "github to api.github.com as bearer token",
            "weather to *.weather.example as x-api-key"
        ]
    );
    assert_eq!(grant.dirs[0].to_string(), "/data is /srv/data (read-write)");
    assert!(!grant.cleanup && !grant.is_empty());
    let limits = grant.limits.in_place_of(&Limits::default());
    assert_eq!((limits.cpu_ms, limits.memory_bytes), (1000, 128 << 20));
    assert_eq!(limits.result_bytes, Limits::default().result_bytes);
}

#[test]
fn what_is_kept_is_read_again() {
    let grant = Grant::of_toml(GRANT).unwrap();
    let json = serde_json::to_value(&grant).unwrap();
    assert_eq!(Grant::of_json(json).unwrap(), grant);
    let policy = Policy::in_force(None, &grant, &Tenant::default(), &Limits::default());
    assert_eq!(Policy::of_kept(&policy.kept()).unwrap(), policy);
}

#[test]
fn the_limits_that_tasks_kept_before_are_a_policy_that_grants_nothing() {
    let kept = serde_json::to_string(&Limits::default()).unwrap();
    let policy = Policy::of_kept(&kept).unwrap();
    assert_eq!(policy, Policy::nothing(Limits::default()));
    for broken in [
        "",
        "[]",
        "{\"version\":2}",
        "{\"version\":1}",
        "{\"cpu\":1}",
        "7",
    ] {
        assert!(Policy::of_kept(broken).is_err(), "{broken}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_what_was_meant() {
    for (text, expected) in [
        ("htp = []", "\"htp\" is not known: is `http` meant?"),
        (
            "[[http]]\nhost = \"a.test\"\nmetods = []",
            "\"http[0].metods\" is not known: is `methods` meant?",
        ),
        (
            "[[http]]\nhost = \"a.test\"\n[[http]]\nhosts = \"b.test\"",
            "\"http[1].hosts\" is not known: is `host` meant?",
        ),
        (
            "[limits]\ncpu_s = 1",
            "\"limits.cpu_s\" is not known: is `cpu_ms` meant?",
        ),
        ("[limits]\ncpu_ms = 0", "limit cpu_ms must be 1 to"),
        (
            "[limits]\nmemory_mib = 257",
            "limit memory_mib must be 1 to 256, and 257 is not",
        ),
        ("[limits]\ncpu_ms = -1", "-1"),
        (
            "colour = 1",
            "there are http, dirs, env, secrets, limits, cleanup",
        ),
        ("http = 1", "http must be a list"),
        ("http = [1]", "http[0] must be a table"),
        ("[[http]]\nport = 80", "missing field `host`"),
        ("[[http]]\nhost = \"a.test\"\nscheme = \"ftp\"", "ftp"),
        ("[[http]]\nhost = \"a.test\"\nport = 0", "port 0 is no port"),
        (
            "[[http]]\nhost = \"a.test\"\nmethods = [\"*\", \"*\"]",
            "no other stands beside it",
        ),
        (
            "[[http]]\nhost = \"a.test\"\nmethods = [\"*\", \"GET\"]",
            "no other stands beside it",
        ),
        (
            "[[http]]\nhost = \"a.test\"\nmethods = []",
            "a rule without methods allows nothing",
        ),
        (
            "[[http]]\nhost = \"a.test\"\nmethods = [\"CONNECT\"]",
            "CONNECT is sent for nobody",
        ),
        ("[[http]]\nhost = \"a.test\"\nin_doubt = \"guess\"", "guess"),
        ("[[http]]\nhost = \"*.com\"", "names of strangers"),
        (
            "[[http]]\nhost = \"a.test\"\nnetworks = [\"0.0.0.0/0\"]",
            "wider than any private network",
        ),
        (
            "[[dirs]]\nguest = \"data\"\nhost = \"/srv\"",
            "is no absolute path",
        ),
        (
            "[[dirs]]\nguest = \"/a/../b\"\nhost = \"/srv\"",
            "is to be written without",
        ),
        (
            "[[dirs]]\nguest = \"/a\"\nhost = \"/srv/\"",
            "is to be written without",
        ),
        (
            "[[dirs]]\nguest = \"/a\"\nhost = \"/\"",
            "is to be written without",
        ),
        (
            "[[dirs]]\nguest = \"/a\"\nhost = \"/proc/self\"",
            "is the kernel's",
        ),
        (
            "[[dirs]]\nguest = \"/scratch/x\"\nhost = \"/srv\"",
            "is the guest's own",
        ),
        (
            "[[dirs]]\nguest = \"/a\"\nhost = \"/x\"\n[[dirs]]\nguest = \"/a/b\"\nhost = \"/y\"",
            "lie in one another",
        ),
        ("[[dirs]]\nguest = \"/a\"", "missing field `host`"),
        ("[env]\n\"A=B\" = \"x\"", "names no value"),
        ("[env]\nA = 1", "invalid type"),
        ("[[secrets]]\nname = \"x\"\nhosts = []", "names no hosts"),
        ("[[secrets]]\nname = \"x\"\nhosts = [\"*\"]", "any host"),
        (
            "[[secrets]]\nname = \"x\"\nhosts = [\"a.test\"]\nkind = \"header\"",
            "say in `header` which",
        ),
        (
            "[[secrets]]\nname = \"x\"\nhosts = [\"a.test\"]\nkind = \"header\"\nheader = \"Host\"",
            "is no header",
        ),
        (
            "[[secrets]]\nname = \"x\"\nhosts = [\"a.test\"]\nheader = \"x\"",
            "only one of kind `header`",
        ),
        ("cleanup = 1", "invalid type"),
        ("= 1", "line 1"),
    ] {
        let fault = Grant::of_toml(text).unwrap_err().to_string();
        assert!(fault.contains(expected), "{text}: {fault}");
        assert!(!fault.contains('\n'), "{fault}");
    }
}

#[test]
fn a_manifest_asks_and_opens_nothing() {
    let asked = Manifest::of_toml(
        "env = [\"TZ\"]\n[[http]]\nhost = \"*\"\n[[dirs]]\nguest = \"/data\"\n[limits]\ncpu_ms = 5\n",
    );
    let asked = asked.unwrap();
    assert_eq!(asked.http[0].to_string(), "GET,HEAD,OPTIONS https://*");
    assert!(asked.cleanup);
    for (text, expected) in [
        (
            "[[http]]\nhost = \"a.test\"\nnetworks = [\"10.0.0.0/8\"]",
            "the operator's to say",
        ),
        (
            "[[dirs]]\nguest = \"/data\"\nhost = \"/srv\"",
            "\"dirs[0].host\" is not known",
        ),
        ("[env]\nTZ = \"x\"", "env must be a list"),
        ("clean_up = false", "is `cleanup` meant?"),
    ] {
        let fault = Manifest::of_toml(text).unwrap_err().to_string();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
    let policy = Policy::in_force(
        Some(&asked),
        &Grant::default(),
        &Tenant::default(),
        &Limits::default(),
    );
    assert!(policy.http.is_empty() && policy.dirs.is_empty() && policy.env.is_empty());
    assert_eq!(policy.limits.cpu_ms, 5);
}

#[test]
fn lists_and_texts_have_their_bounds() {
    let rules = |count: usize| json!({ "http": vec![json!({ "host": "a.test" }); count] });
    assert!(Grant::of_json(rules(256)).is_ok());
    let fault = Grant::of_json(rules(257)).unwrap_err();
    assert!(fault.to_string().contains("more than 256"), "{fault}");
    let env = |bytes: usize| json!({ "env": { "A": "x".repeat(bytes) } });
    assert!(Grant::of_json(env(32 * 1024 - 1)).is_ok());
    assert!(Grant::of_json(env(32 * 1024)).is_err());
    let comment = "#".repeat(64 * 1024);
    assert!(Grant::of_toml(&comment).is_ok());
    assert!(Grant::of_toml(&format!("{comment}#")).is_err());
}

#[test]
fn every_bound_can_be_named() {
    let every: serde_json::Map<String, serde_json::Value> = longshore_policy::limits::BOUNDS
        .iter()
        .map(|bound| (bound.name.to_owned(), json!(1)))
        .collect();
    let grant = Grant::of_json(json!({ "limits": every })).unwrap();
    let lowered = grant.limits.lowering(&Limits::default());
    let fields = serde_json::to_value(&lowered).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        let least = [1, 1024, 1024 * 1024].contains(&value.as_u64().unwrap());
        assert!(least, "{name} is not to be named: {value}");
    }
}
