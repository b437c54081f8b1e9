//! Requests of a guest: sent once, seen once, and never guessed at.

use std::sync::Arc;

use longshore_journal::call::Answer;
use longshore_journal::http::{Blob, Failure, Outcome, Response};
use longshore_journal::record::{Record, What};
use longshore_journal::world::{After, Begin};
use longshore_policy::http::{InDoubt, Rule};
use longshore_policy::limits::Limits;
use longshore_policy::policy::Policy;
use wasmtime::component::Resource;

use super::kit::origin;
use super::script::{Scene, Script, granted};
use crate::bindings::longshore::tool::task::Host as _;
use crate::bindings::wasi_world::wasi::http::outgoing_handler::Host as _;
use crate::bindings::wasi_world::wasi::http::types::{
    ErrorCode, HostFields, HostFutureIncomingResponse as Futures, HostIncomingBody,
    HostIncomingResponse, HostOutgoingBody, HostOutgoingRequest, Method, Scheme,
};
use crate::bindings::wasi_world::wasi::io::poll::Host as _;
use crate::bindings::wasi_world::wasi::io::streams::{HostInputStream, HostOutputStream};
use crate::fault::Halt;
use crate::grants::Grants;
use crate::host::State;
use crate::journal::Journal;
use crate::wasi::http::{Body, Future};

fn on<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

fn grants(rule: &str, in_doubt: InDoubt) -> Grants {
    let rule: Rule = rule.parse().unwrap();
    let policy = Policy {
        http: vec![Rule {
            in_doubt: Some(in_doubt),
            ..rule
        }],
        ..Policy::nothing(Limits::default())
    };
    Grants::of(policy, &Arc::default())
}

fn ok(status: u16, body: &str) -> Outcome {
    Ok(Response {
        status,
        fields: vec![("x-from".into(), Blob::from(b"there".to_vec()))],
        body: Blob::from(body.as_bytes().to_vec()),
    })
}

fn script(outcomes: &[Outcome]) -> Script {
    let script = Script::default();
    script.outcomes.lock().extend_from_slice(outcomes);
    script
}

/// A run that repeats these and goes on as that says.
fn journal(records: &[Record], after: After) -> Journal {
    let begin = Begin {
        from: None,
        records: records.to_vec(),
    };
    Journal {
        begin,
        after,
        ..Journal::fresh(origin())
    }
}

fn request(state: &mut State, method: Method, url: &str) -> Resource<crate::wasi::http::Request> {
    let headers = state.from_list(Vec::new()).unwrap();
    let request = HostOutgoingRequest::new(state, headers).unwrap();
    let (authority, path) = url.split_at(url.find('/').unwrap_or(url.len()));
    state.set_method(on(&request), method).unwrap().unwrap();
    let scheme = Some(Scheme::Https);
    state.set_scheme(on(&request), scheme).unwrap().unwrap();
    let authority = Some(authority.to_owned());
    state
        .set_authority(on(&request), authority)
        .unwrap()
        .unwrap();
    let path = Some(path.to_owned());
    state
        .set_path_with_query(on(&request), path)
        .unwrap()
        .unwrap();
    request
}

/// What a guest makes of one exchange.
type Seen = Result<(u16, String), String>;

async fn respond(state: &mut State, future: Resource<Future>) -> wasmtime::Result<Seen> {
    let pollable = Futures::subscribe(state, on(&future))?;
    assert_eq!(state.poll(vec![pollable]).await?, [0]);
    let response = match Futures::get(state, on(&future)).await? {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(code))) => return Ok(Err(format!("{code:?}"))),
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        Futures::get(state, on(&future)).await?,
        Some(Err(()))
    ));
    let status = HostIncomingResponse::status(state, on(&response))?;
    let fields = HostIncomingResponse::headers(state, on(&response))?;
    assert_eq!(
        HostFields::get(state, fields, "X-From".into())?,
        [b"there".to_vec()]
    );
    let body = HostIncomingResponse::consume(state, on(&response))?.unwrap();
    let stream = HostIncomingBody::stream(state, on(&body))?.unwrap();
    let mut text = Vec::new();
    while let Ok(piece) = HostInputStream::read(state, on(&stream), 3) {
        text.extend(piece);
    }
    HostInputStream::drop(state, stream)?;
    HostIncomingBody::finish(state, body)?;
    Ok(Ok((status, String::from_utf8(text).unwrap())))
}

/// A guest that looks something up and then orders it.
async fn looks_and_orders(state: &mut State) -> wasmtime::Result<Vec<Seen>> {
    let get = request(state, Method::Get, "shop.example.org/price?of=it");
    let future = state.handle(get, None).await?.unwrap();
    let price = respond(state, future).await?;
    let post = request(state, Method::Post, "shop.example.org/orders?key=private");
    let body = HostOutgoingRequest::body(state, on(&post))?.unwrap();
    let future = state.handle(post, None).await?.unwrap();
    write(state, &body, b"one of it");
    HostOutgoingBody::finish(state, body, None).await?.unwrap();
    let order = respond(state, future).await?;
    Ok(vec![price, order])
}

fn write(state: &mut State, body: &Resource<Body>, bytes: &[u8]) {
    let stream = HostOutgoingBody::write(state, on(body)).unwrap().unwrap();
    assert!(HostOutputStream::write(state, on(&stream), bytes.to_vec()).is_ok());
    HostOutputStream::drop(state, stream).unwrap();
}

const SHOP: &str = "GET,POST https://shop.example.org";

fn both() -> [Outcome; 2] {
    [ok(200, "1 coin"), ok(201, "ordered")]
}

/// The whole of it, and its records.
async fn whole(in_doubt: InDoubt) -> (Vec<Seen>, Vec<Record>) {
    let journal = Journal::fresh(origin());
    let tape = journal.tape.clone();
    let Scene {
        mut state, script, ..
    } = granted(&grants(SHOP, in_doubt), script(&both()), journal);
    let seen = looks_and_orders(&mut state).await.unwrap();
    let sent = script.sent.lock().clone();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].path, "/price?of=it");
    assert_eq!(sent[1].authority.to_string(), "shop.example.org:443");
    assert_eq!(&sent[1].body[..], b"one of it");
    assert_eq!(
        (sent[0].is_keyed, sent[1].is_keyed),
        (false, in_doubt == InDoubt::Resend)
    );
    // Only what may change something is kept before it is sent.
    assert_eq!(script.settled.load(std::sync::atomic::Ordering::Relaxed), 1);
    (seen, tape.take().records)
}

#[tokio::test]
async fn what_was_seen_is_seen_again_and_nothing_is_sent() {
    let (seen, records) = whole(InDoubt::Ask).await;
    let expected = [
        Ok((200, "1 coin".to_owned())),
        Ok((201, "ordered".to_owned())),
    ];
    assert_eq!(seen, expected);
    let Scene {
        mut state, script, ..
    } = granted(
        &grants(SHOP, InDoubt::Ask),
        script(&[]),
        journal(&records, After::Stop),
    );
    assert_eq!(looks_and_orders(&mut state).await.unwrap(), expected);
    assert!(script.sent.lock().is_empty());
    assert!(!script.was_needed());
}

fn is_sent(record: &Record, write: bool) -> bool {
    matches!(&record.what, What::Sent { sent, .. } if sent.is_write == write)
}

/// How many requests that may change something are in doubt where these records end.
fn doubtful(records: &[Record]) -> bool {
    let Some(Record {
        what: What::Sent { sent, .. },
        ..
    }) = records.iter().find(|record| is_sent(record, true))
    else {
        return false;
    };
    !records.iter().any(
        |record| matches!(&record.what, What::Came { exchange, .. } if *exchange == sent.exchange),
    )
}

#[tokio::test]
async fn wherever_the_records_end_what_may_change_something_is_sent_once() {
    let (expected, records) = whole(InDoubt::Tell).await;
    let mut in_doubt = 0;
    for cut in 0..records.len() {
        let past = &records[..cut];
        let came = past
            .iter()
            .filter(|record| matches!(record.what, What::Came { .. }))
            .count();
        let Scene {
            mut state, script, ..
        } = granted(
            &grants(SHOP, InDoubt::Tell),
            script(&both()[came..]),
            journal(past, After::Live),
        );
        let seen = looks_and_orders(&mut state).await.unwrap();
        assert_eq!(seen[0], expected[0], "cut at {cut}");
        let sent = script.sent.lock();
        let writes = sent
            .iter()
            .filter(|sent| sent.method.as_str() == "POST")
            .count();
        if doubtful(past) {
            in_doubt += 1;
            assert_eq!(writes, 0, "cut at {cut}");
            let told = seen[1].as_ref().unwrap_err();
            assert!(told.contains("outcome-unknown"), "{told}");
        } else {
            assert_eq!(seen[1], expected[1], "cut at {cut}");
            assert_eq!(
                writes,
                1 - usize::from(came == 2),
                "cut at {cut} of {records:?}"
            );
        }
    }
    assert!(in_doubt >= 2, "{records:?}");
}

/// The records up to where the order was written down, and those up to where it was waited for.
async fn ends_in_doubt(in_doubt: InDoubt) -> Vec<Vec<Record>> {
    let (_, records) = whole(in_doubt).await;
    (0..records.len())
        .map(|cut| records[..cut].to_vec())
        .filter(|past| doubtful(past))
        .collect()
}

#[tokio::test]
async fn a_target_that_knows_the_key_is_sent_it_again() {
    for past in ends_in_doubt(InDoubt::Resend).await {
        let Scene {
            mut state, script, ..
        } = granted(
            &grants(SHOP, InDoubt::Resend),
            script(&both()[1..]),
            journal(&past, After::Live),
        );
        let seen = looks_and_orders(&mut state).await.unwrap();
        assert_eq!(seen[1], Ok((201, "ordered".to_owned())));
        let sent = script.sent.lock();
        assert_eq!(sent.len(), 1);
        assert!(sent[0].is_keyed);
        assert_eq!(&sent[0].body[..], b"one of it");
    }
}

fn halt(error: &wasmtime::Error) -> String {
    match error.downcast_ref::<Halt>() {
        Some(halt @ (Halt::InDoubt(_) | Halt::Misuse(_))) => halt.to_string(),
        _ => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn where_nobody_is_to_decide_the_run_ends() {
    for past in ends_in_doubt(InDoubt::Fail).await {
        let Scene {
            mut state, script, ..
        } = granted(
            &grants(SHOP, InDoubt::Fail),
            script(&[]),
            journal(&past, After::Live),
        );
        let ended = looks_and_orders(&mut state).await.unwrap_err();
        let told = halt(&ended);
        assert!(
            told.contains("POST https://shop.example.org/orders"),
            "{told}"
        );
        // What stands behind the path may be private.
        assert!(!told.contains("private"), "{told}");
        assert!(script.sent.lock().is_empty());
    }
}

#[tokio::test]
async fn whoever_called_decides_and_that_is_kept() {
    let answered = |choice: &str| {
        let json = format!(r#"{{"choice":"{choice}"}}"#);
        Answer::Accepted(Some(json))
    };
    let cases = [
        (answered("send-again"), "ordered", 1),
        (answered("tell-the-tool"), "outcome-unknown", 0),
        (answered("end-the-task"), "nobody knows", 0),
        (answered("something"), "nobody knows", 0),
        (Answer::Declined, "nobody knows", 0),
        (Answer::Dismissed, "nobody knows", 0),
    ];
    for past in ends_in_doubt(InDoubt::Ask).await {
        for (answer, comes_to, sent) in &cases {
            let again = Journal {
                tape: longshore_journal::tape::Tape::behind(&past),
                ..journal(&past, After::Live)
            };
            let tape = again.tape.clone();
            let Scene {
                mut state, script, ..
            } = granted(
                &grants(SHOP, InDoubt::Ask),
                Script {
                    answer: Some(answer.clone()),
                    ..script(&both()[1..])
                },
                again,
            );
            let first = made_of(looks_and_orders(&mut state).await);
            assert!(first.contains(comes_to), "{answer:?}: {first}");
            assert_eq!(script.sent.lock().len(), *sent, "{answer:?}");
            assert_eq!(script.asked.lock().len(), 1, "{answer:?}");
            // The same again, from all that is recorded now: nobody is asked once more.
            let mut records = past.clone();
            records.extend(tape.take().records);
            let Scene {
                mut state, script, ..
            } = granted(
                &grants(SHOP, InDoubt::Ask),
                Script::default(),
                journal(&records, After::Live),
            );
            assert_eq!(made_of(looks_and_orders(&mut state).await), first);
            assert!(script.sent.lock().is_empty() && script.asked.lock().is_empty());
        }
    }
}

fn made_of(outcome: wasmtime::Result<Vec<Seen>>) -> String {
    match outcome {
        Ok(seen) => format!("{:?}", seen[1]),
        Err(error) => halt(&error),
    }
}

#[tokio::test]
async fn what_was_decided_and_not_done_is_asked_again() {
    let past = ends_in_doubt(InDoubt::Ask).await.remove(0);
    let again = Journal {
        tape: longshore_journal::tape::Tape::behind(&past),
        ..journal(&past, After::Live)
    };
    let tape = again.tape.clone();
    let send_again = Answer::Accepted(Some(r#"{"choice":"send-again"}"#.into()));
    let answering = |outcomes: &[Outcome]| Script {
        answer: Some(send_again.clone()),
        ..script(outcomes)
    };
    let Scene { mut state, .. } =
        granted(&grants(SHOP, InDoubt::Ask), answering(&both()[1..]), again);
    looks_and_orders(&mut state).await.unwrap();
    let mut records = past;
    records.extend(tape.take().records);
    let answered = |record: &Record| matches!(record.what, What::Answered(_));
    let at = records.iter().position(answered).unwrap();
    records.truncate(at + 1);
    // It may have been sent by then.
    let Scene {
        mut state, script, ..
    } = granted(
        &grants(SHOP, InDoubt::Ask),
        answering(&both()[1..]),
        journal(&records, After::Live),
    );
    looks_and_orders(&mut state).await.unwrap();
    assert_eq!(script.asked.lock().len(), 1);
    assert_eq!(script.sent.lock().len(), 1);
}

#[tokio::test]
async fn what_is_not_granted_is_refused_at_once_and_said_in_the_log() {
    let Scene {
        mut state, script, ..
    } = granted(
        &grants(SHOP, InDoubt::Ask),
        Script::default(),
        Journal::fresh(origin()),
    );
    let cases = [
        (Method::Get, "example.org/", "example.org is not granted"),
        (Method::Put, "shop.example.org/", "not for PUT"),
        (Method::Get, "shop.example.org:8443/", "not at port 8443"),
        (Method::Get, "user@shop.example.org/", "names a user"),
        (Method::Connect, "shop.example.org/", "not for CONNECT"),
    ];
    for (n, (method, url, why)) in cases.into_iter().enumerate() {
        let request = request(&mut state, method, url);
        let refused = state.handle(request, None).await.unwrap().unwrap_err();
        assert!(
            matches!(
                refused,
                ErrorCode::HttpRequestDenied | ErrorCode::HttpRequestUriInvalid
            ),
            "{refused:?}"
        );
        let logs = script.logs.lock();
        assert!(logs[n].1.contains(why), "{:?}", logs[n]);
    }
    assert!(script.sent.lock().is_empty());
}

#[tokio::test]
async fn a_path_is_nothing_but_a_path() {
    let cases = [
        ("/", "/"),
        ("/a?b", "/a?b"),
        ("?b", "/?b"),
        ("a", "/a"),
        ("//elsewhere.test/a", "//elsewhere.test/a"),
        ("http://elsewhere.test/a", "/http://elsewhere.test/a"),
        ("elsewhere.test:80", "/elsewhere.test:80"),
    ];
    for (given, sent) in cases {
        let Scene {
            mut state, script, ..
        } = granted(
            &grants(SHOP, InDoubt::Ask),
            script(&both()),
            Journal::fresh(origin()),
        );
        let get = request(&mut state, Method::Get, "shop.example.org/");
        let path = Some(given.to_owned());
        if state.set_path_with_query(on(&get), path).unwrap().is_err() {
            continue;
        }
        let future = state.handle(get, None).await.unwrap().unwrap();
        respond(&mut state, future).await.unwrap().unwrap();
        assert_eq!(script.sent.lock()[0].path, sent, "{given}");
    }
}

#[tokio::test]
async fn no_more_are_under_way_than_may_be() {
    let Scene { mut state, .. } = granted(
        &grants(SHOP, InDoubt::Ask),
        Script::default(),
        Journal::fresh(origin()),
    );
    let mut futures = Vec::new();
    for _ in 0..Limits::default().http_at_once {
        let get = request(&mut state, Method::Get, "shop.example.org/");
        futures.push(state.handle(get, None).await.unwrap().unwrap());
    }
    let get = request(&mut state, Method::Get, "shop.example.org/");
    let refused = state.handle(get, None).await.unwrap().unwrap_err();
    assert!(matches!(refused, ErrorCode::ConnectionLimitReached));
    Futures::drop(&mut state, futures.pop().unwrap()).unwrap();
    let get = request(&mut state, Method::Get, "shop.example.org/");
    assert!(state.handle(get, None).await.unwrap().is_ok());
}

#[tokio::test]
async fn a_body_that_is_never_finished_is_never_sent() {
    let Scene {
        mut state, script, ..
    } = granted(
        &grants(SHOP, InDoubt::Ask),
        Script::default(),
        Journal::fresh(origin()),
    );
    let post = request(&mut state, Method::Post, "shop.example.org/");
    let body = HostOutgoingRequest::body(&mut state, on(&post))
        .unwrap()
        .unwrap();
    let future = state.handle(post, None).await.unwrap().unwrap();
    write(&mut state, &body, b"half");
    // Nobody but the guest itself could end this wait.
    let pollable = Futures::subscribe(&mut state, on(&future)).unwrap();
    let hangs = state.poll(vec![pollable]).await.unwrap_err();
    assert!(halt(&hangs).contains("has not finished"));
    HostOutgoingBody::drop(&mut state, body).unwrap();
    let seen = respond(&mut state, future).await.unwrap();
    assert!(seen.unwrap_err().contains("never finished"));
    assert!(script.sent.lock().is_empty());
}

#[tokio::test]
async fn a_step_and_a_request_do_not_overlap() {
    let Scene { mut state, .. } = granted(
        &grants(SHOP, InDoubt::Ask),
        script(&both()),
        Journal::fresh(origin()),
    );
    let get = request(&mut state, Method::Get, "shop.example.org/");
    let future = state.handle(get, None).await.unwrap().unwrap();
    let begun = state.step_begin("s".into()).await.unwrap_err();
    assert!(halt(&begun).contains("a step begins while a request is under way"));
    Futures::drop(&mut state, future).unwrap();
    state.step_begin("s".into()).await.unwrap();
    let get = request(&mut state, Method::Get, "shop.example.org/");
    let future = state.handle(get, None).await.unwrap().unwrap();
    let ended = state.step_end("s".into(), Vec::new()).await.unwrap_err();
    assert!(halt(&ended).contains("a step ends while a request is under way"));
    respond(&mut state, future).await.unwrap().unwrap();
    state.step_end("s".into(), Vec::new()).await.unwrap();
}

#[tokio::test]
async fn every_failure_has_a_code_of_its_own_interface() {
    let cases = [
        (Failure::DnsTimeout, "DnsTimeout"),
        (Failure::DnsError, "DnsError"),
        (
            Failure::AddressProhibited("a loopback address".into()),
            "DestinationIpProhibited",
        ),
        (Failure::Refused, "ConnectionRefused"),
        (Failure::ConnectTimeout, "ConnectionTimeout"),
        (Failure::Terminated, "ConnectionTerminated"),
        (Failure::Certificate("old".into()), "TlsCertificateError"),
        (Failure::Tls("none".into()), "TlsProtocolError"),
        (Failure::ResponseTimeout, "HttpResponseTimeout"),
        (Failure::HeadTooLarge(9), "HttpResponseHeaderSectionSize"),
        (Failure::BodyTooLarge(9), "HttpResponseBodySize(Some(9))"),
        (Failure::Protocol, "HttpProtocolError"),
        (Failure::ConnectionLimit, "ConnectionLimitReached"),
        (Failure::Secret("token".into()), "secret token"),
        (Failure::PlainSecret("token".into()), "https only"),
    ];
    for (failure, code) in cases {
        let Scene { mut state, .. } = granted(
            &grants(SHOP, InDoubt::Ask),
            script(&[Err(failure)]),
            Journal::fresh(origin()),
        );
        let get = request(&mut state, Method::Get, "shop.example.org/");
        let future = state.handle(get, None).await.unwrap().unwrap();
        let seen = respond(&mut state, future).await.unwrap().unwrap_err();
        assert!(seen.contains(code), "{seen}");
    }
}
