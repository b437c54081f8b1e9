//! Secrets go to those who may see them, and nowhere else.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use futures_util::FutureExt as _;
use http::HeaderMap;
use serde_json::json;

use super::*;

const CANARY: &str = "canary-8f2e71";

fn keep(dir: &Path, name: &str, value: &str, mode: u32) {
    let path = dir.join(name);
    std::fs::write(&path, value).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn secret(json: serde_json::Value) -> Secret {
    serde_json::from_value(json).unwrap()
}

fn token() -> Vec<Secret> {
    vec![secret(json!({ "name": "token", "hosts": ["127.0.0.1"] }))]
}

fn both() -> Vec<Secret> {
    let key = json!({ "name": "key", "hosts": ["127.0.0.1"], "kind": "header", "header": "X-Key" });
    [token(), vec![secret(key)]].concat()
}

async fn sent(
    vault: &Path,
    fields: &[(&str, &str)],
    secrets: Vec<Secret>,
) -> Result<String, Failure> {
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let mut outgoing = plain(host.address);
    outgoing.fields = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    outgoing.secrets = secrets;
    let egress = Egress::new(Vault::in_directory(vault.to_owned()), 1);
    egress.send("c", outgoing).await?;
    Ok(host.read().remove(0))
}

#[tokio::test]
async fn a_secret_is_sent_where_it_is_granted_and_as_it_is_granted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    keep(dir, "token", &format!("{CANARY}\n"), 0o600);
    keep(dir, "key", "k", 0o400);
    let bearer = format!("authorization: Bearer {CANARY}\r\n");
    let all = sent(dir, &[], both()).await.unwrap();
    assert!(
        all.contains(&bearer) && all.contains("x-key: k\r\n"),
        "{all}"
    );
    // What the guest says goes before.
    let own = sent(dir, &[("authorization", "own")], both())
        .await
        .unwrap();
    assert!(own.contains("authorization: own\r\n"), "{own}");
    assert!(!own.contains(CANARY), "{own}");
    let named = [
        ("authorization", "Token {secret:token}; {secret:key}!"),
        ("x-key", "{secret"),
    ];
    let named = sent(dir, &named, both()).await.unwrap();
    let filled = format!("authorization: Token {CANARY}; k!\r\n");
    assert!(named.contains(&filled), "{named}");
    assert!(named.contains("x-key: {secret\r\n"), "{named}");
    // It is for other hosts.
    let none = sent(dir, &[], Vec::new()).await.unwrap();
    assert!(!none.contains(CANARY), "{none}");
    let hidden = sent(dir, &[("a", "{secret:token}")], Vec::new()).await;
    assert_eq!(hidden, Err(Failure::Secret("token".into())));
    let basic = json!({ "name": "token", "hosts": ["127.0.0.1"], "kind": "basic" });
    let basic = sent(dir, &[], vec![secret(basic)]).await.unwrap();
    let encoded = "authorization: Basic Y2FuYXJ5LThmMmU3MQ==\r\n";
    assert!(basic.contains(encoded), "{basic}");
}

#[tokio::test]
async fn a_secret_that_cannot_be_had_stops_the_request() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let missing = || Err(Failure::Secret("token".into()));
    assert_eq!(sent(dir, &[], token()).await, missing());
    let long = "x".repeat(17_000);
    for (value, mode) in [
        (CANARY, 0o644),
        (CANARY, 0o620),
        ("two\nlines", 0o600),
        (&long, 0o600),
    ] {
        keep(dir, "token", value, mode);
        assert_eq!(sent(dir, &[], token()).await, missing());
        std::fs::remove_file(dir.join("token")).unwrap();
    }
    std::fs::create_dir(dir.join("token")).unwrap();
    assert_eq!(sent(dir, &[], token()).await, missing());
}

#[tokio::test]
async fn what_stands_around_the_name_of_a_secret_need_be_no_text() {
    let dir = tempfile::tempdir().unwrap();
    keep(dir.path(), "token", CANARY, 0o600);
    let named = sent(
        dir.path(),
        &[("x-a", "\u{e9} {secret:token} \u{fc}")],
        token(),
    )
    .await;
    let named = named.unwrap();
    let filled = format!("x-a: \u{e9} {CANARY} \u{fc}\r\n");
    assert!(named.contains(&filled), "{named}");
    let unknown = sent(dir.path(), &[("x-a", "\u{e9}{secret:t\u{f6}ken}")], token()).await;
    assert_eq!(unknown, Err(Failure::Secret("t\u{f6}ken".into())));
}

#[tokio::test]
async fn what_everybody_on_the_way_can_read_is_no_way_for_a_secret() {
    let dir = tempfile::tempdir().unwrap();
    keep(dir.path(), "token", CANARY, 0o600);
    let mut egress = Egress::new(Vault::in_directory(dir.path().to_owned()), 1);
    egress.resolver = Names::of(&[
        ("far.test", &[&["192.0.2.1"]]),
        ("near.test", &[&["192.0.2.1", "127.0.0.1"]]),
    ]);
    let host = Host::that(|stream| ok(stream).boxed()).await;
    let to_name = |name: &str, plain: bool| {
        let mut outgoing = to(Scheme::Http, &format!("{name}:{}", host.address.port()));
        outgoing.networks.push("192.0.2.0/24".parse().unwrap());
        outgoing.bounds.connect_ms = 300;
        let granted = json!({ "name": "token", "hosts": [name], "plain": plain });
        outgoing.secrets = vec![secret(granted)];
        outgoing
    };
    let refused = egress.send("c", to_name("far.test", false)).await;
    assert_eq!(refused, Err(Failure::PlainSecret("token".into())));
    // Whoever says the word is taken at it: nobody is at home there.
    let allowed = egress.send("c", to_name("far.test", true)).await;
    assert!(
        !matches!(allowed, Err(Failure::PlainSecret(_))),
        "{allowed:?}"
    );
    // Of a name that leads to both, only what is near is dialled.
    let near = response(egress.send("c", to_name("near.test", false)).await);
    assert_eq!(near.status, 200);
    assert!(host.read()[0].contains(CANARY));
    // Without a secret nothing is guarded.
    let mut bare = to_name("far.test", false);
    bare.secrets.clear();
    let bare = egress.send("c", bare).await;
    assert!(!matches!(bare, Err(Failure::PlainSecret(_))), "{bare:?}");
}

#[tokio::test]
async fn a_secret_is_its_own_file_and_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    keep(dir, "elsewhere", CANARY, 0o600);
    std::os::unix::fs::symlink(dir.join("elsewhere"), dir.join("token")).unwrap();
    let linked = sent(dir, &[], token()).await;
    assert_eq!(linked, Err(Failure::Secret("token".into())));
}

/// Others change the file all the time: one that they may read has another text in it.
#[test]
fn what_is_judged_of_a_secret_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    keep(dir, "good", "good", 0o600);
    keep(dir, "open", "open", 0o644);
    let link = |name: &str, at: &str| {
        std::fs::hard_link(dir.join(name), dir.join(at)).unwrap();
        std::fs::rename(dir.join(at), dir.join("token")).unwrap();
    };
    link("good", "next");
    let vault = Vault::in_directory(dir.to_owned());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                link("open", "next");
                link("good", "next");
            }
        });
        for _ in 0..20_000 {
            let mut fields = HeaderMap::new();
            if vault.fill(&mut fields, &token()).is_ok() {
                assert_eq!(fields["authorization"], "Bearer good");
            }
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn what_is_filled_in_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    keep(dir.path(), "token", CANARY, 0o600);
    let vault = Vault::in_directory(dir.path().to_owned());
    let mut fields = HeaderMap::new();
    vault.fill(&mut fields, &token()).unwrap();
    let shown = format!("{fields:?}");
    assert!(shown.contains("authorization"), "{shown}");
    assert!(!shown.contains(CANARY), "{shown}");
}
