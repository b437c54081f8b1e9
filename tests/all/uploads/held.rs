//! Components that are taken away while calls need them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use longshore_catalog::component::Digest;
use longshore_catalog::store::ComponentStore as _;
use longshore_sandbox::sandbox::WasiKind;
use longshore_server::egress::vault::Vault;
use longshore_server::local::{Begun, Person};
use longshore_server::marks::Marks;
use longshore_server::seal::Keys;
use longshore_server::server::{Parts, Server};
use longshore_server::settings::Settings;
use longshore_store::memory::Memory;
use longshore_tests::component::{Act, Behaviour, Made, Mode, Tool};
use longshore_tests::{inside, wait};
use serde_json::value::RawValue;

#[tokio::test]
async fn a_call_that_is_held_keeps_its_component_for_its_task() {
    let store = Memory::default();
    let server = Server::new(Parts {
        sandbox: inside::sandbox(1, 8, WasiKind::Virtual).expect("there is a sandbox"),
        tasks: Arc::new(store.clone()),
        components: Arc::new(store.clone()),
        values: Arc::new(store.clone()),
        artifacts: Arc::new(store.clone()),
        settings: Settings {
            inline_budget_ms: 500,
            ..Settings::default()
        },
        keys: Keys::of_this_process(),
        marks: Marks::default(),
        vault: Vault::default(),
        version: "0",
    });
    let made = Made {
        call: Behaviour::Does(&[Act::Sleep(1_500)]),
        ..Made::of([Tool {
            mode: Mode::Auto,
            ..Tool::named("acts")
        }])
    };
    let digest = Digest::of(&made.bytes());
    let name = || "acts".parse().expect("it is a name");
    server
        .install(name(), made.bytes())
        .await
        .expect("it is accepted");
    let arguments = RawValue::from_string("{}".to_owned()).expect("it is JSON");
    let mut call = Box::pin(server.call_locally(Person::Absent, "acts", &arguments, |_| {}));
    // It has begun, and is held.
    assert!((&mut call).now_or_never().is_none());
    server.remove(name()).await.expect("it was there");
    server.clean().await.expect("the store works");
    let begun = call.await.expect("it goes on");
    assert!(matches!(begun, Begun::Task(_)), "{begun:?}");
    server.clean().await.expect("the store works");
    let bytes = |digest: &Digest| {
        let (store, digest) = (store.clone(), digest.clone());
        async move { store.bytes(digest).await.expect("the store works") }
    };
    assert_eq!(bytes(&digest).await, Some(made.bytes()));
    // Once nobody needs it any more it goes.
    wait::until("the bytes to go", Duration::from_secs(60), || async {
        server.clean().await.expect("the store works");
        bytes(&digest).await.is_none().then_some(())
    })
    .await;
}
