//! HTTP messages that a guest makes up.

use wasmtime::component::Resource;

use super::script::{Scene, new_scene};
use crate::bindings::wasi_world::wasi::http::outgoing_handler::Host as _;
use crate::bindings::wasi_world::wasi::http::types::{
    ErrorCode, HeaderError, HostFields, HostOutgoingBody, HostOutgoingRequest,
    HostOutgoingResponse, HostRequestOptions, Method, Scheme,
};
use crate::bindings::wasi_world::wasi::io::streams::HostOutputStream;
use crate::fault::Halt;
use crate::host::State;
use crate::wasi::http::{Fields, FieldsError, Request};
use crate::wasi::io::{Failure, StreamError};

fn on<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

fn fields(state: &mut State) -> Resource<Fields> {
    HostFields::new(state).unwrap()
}

fn request(state: &mut State, headers: &[(&str, &str)]) -> Resource<Request> {
    let entries = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
        .collect();
    let headers = state.from_list(entries).unwrap();
    HostOutgoingRequest::new(state, headers).unwrap()
}

fn refused<T>(outcome: Result<T, FieldsError>) -> &'static str {
    match outcome {
        Err(FieldsError::Header(HeaderError::InvalidSyntax)) => "syntax",
        Err(FieldsError::Header(HeaderError::Forbidden)) => "forbidden",
        Err(FieldsError::Header(HeaderError::Immutable)) => "immutable",
        Err(FieldsError::Trap(error)) => panic!("{error:?}"),
        Ok(_) => panic!("it was done"),
    }
}

#[tokio::test]
async fn a_request_is_denied_with_an_error() {
    let Scene { mut state, .. } = new_scene();
    let request = request(&mut state, &[("accept", "text/plain")]);
    assert!(
        state
            .set_method(on(&request), Method::Post)
            .unwrap()
            .is_ok()
    );
    let scheme = Some(Scheme::Https);
    assert!(state.set_scheme(on(&request), scheme).unwrap().is_ok());
    let authority = Some("example.com:8080".to_owned());
    assert!(
        state
            .set_authority(on(&request), authority)
            .unwrap()
            .is_ok()
    );
    let path = Some("/a?b=c".to_owned());
    assert!(
        state
            .set_path_with_query(on(&request), path)
            .unwrap()
            .is_ok()
    );
    let method = HostOutgoingRequest::method(&mut state, on(&request)).unwrap();
    assert!(matches!(method, Method::Post));
    let path = HostOutgoingRequest::path_with_query(&mut state, on(&request)).unwrap();
    assert_eq!(path.as_deref(), Some("/a?b=c"));
    let options = HostRequestOptions::new(&mut state).unwrap();
    assert!(
        state
            .set_connect_timeout(on(&options), Some(5))
            .unwrap()
            .is_ok()
    );
    assert_eq!(state.connect_timeout(on(&options)).unwrap(), Some(5));
    assert_eq!(state.first_byte_timeout(on(&options)).unwrap(), None);
    let (sent, with) = (on(&request), on(&options));
    let denied = state
        .handle(request, Some(options))
        .await
        .unwrap()
        .unwrap_err();
    assert!(matches!(denied, ErrorCode::HttpRequestDenied), "{denied:?}");
    // Both are gone.
    assert!(HostOutgoingRequest::method(&mut state, sent).is_err());
    assert!(state.connect_timeout(with).is_err());
}

#[test]
fn what_makes_no_request_is_refused() {
    let Scene { mut state, .. } = new_scene();
    let request = request(&mut state, &[]);
    let other = |text: &str| Method::Other(text.to_owned());
    assert!(
        state
            .set_method(on(&request), other("a b"))
            .unwrap()
            .is_err()
    );
    assert!(
        state
            .set_method(on(&request), other("FETCH"))
            .unwrap()
            .is_ok()
    );
    let path = Some("/a b".to_owned());
    assert!(
        state
            .set_path_with_query(on(&request), path)
            .unwrap()
            .is_err()
    );
    let authority = Some("a b".to_owned());
    assert!(
        state
            .set_authority(on(&request), authority)
            .unwrap()
            .is_err()
    );
    let scheme = Some(Scheme::Other("a b".to_owned()));
    assert!(state.set_scheme(on(&request), scheme).unwrap().is_err());
    // All texts of one request share 8 KiB; FETCH has five of them.
    let path = |length: usize| Some(format!("/{}", "p".repeat(length - 1)));
    let longest = 8 * 1024 - 5;
    for (length, fits) in [(longest, true), (longest + 1, false), (longest, true)] {
        let set = state
            .set_path_with_query(on(&request), path(length))
            .unwrap();
        assert_eq!(set.is_ok(), fits, "{length}");
    }
    let authority = Some("a".to_owned());
    assert!(
        state
            .set_authority(on(&request), authority)
            .unwrap()
            .is_err()
    );

    let headers = fields(&mut state);
    let response = HostOutgoingResponse::new(&mut state, headers).unwrap();
    assert!(state.set_status_code(on(&response), 99).unwrap().is_err());
    assert!(state.set_status_code(on(&response), 404).unwrap().is_ok());
    assert_eq!(state.status_code(response).unwrap(), 404);
}

#[test]
fn fields_keep_their_rules() {
    let Scene { mut state, .. } = new_scene();
    let list = fields(&mut state);
    let value = |text: &str| text.as_bytes().to_vec();
    let append = |state: &mut State, name: &str, text: &str| {
        HostFields::append(state, on(&list), name.into(), value(text))
    };
    append(&mut state, "Accept", "a").unwrap();
    append(&mut state, "x", "1").unwrap();
    append(&mut state, "accept", "b").unwrap();
    let got = HostFields::get(&mut state, on(&list), "ACCEPT".into()).unwrap();
    assert_eq!(got, [value("a"), value("b")]);
    assert!(HostFields::has(&mut state, on(&list), "X".into()).unwrap());
    assert!(!HostFields::has(&mut state, on(&list), "a b".into()).unwrap());
    let syntax = [("a b", "v"), ("", "v"), ("name", "a\r\nb")];
    for (name, text) in syntax {
        assert_eq!(refused(append(&mut state, name, text)), "syntax");
    }
    for name in ["Host", "connection", "Transfer-Encoding", "keep-alive"] {
        assert_eq!(refused(append(&mut state, name, "v")), "forbidden");
    }
    append(&mut state, "content-length", "5").unwrap();
    assert_eq!(refused(append(&mut state, "content-length", "6")), "syntax");
    let bad = vec![value("7"), value("a\nb")];
    let set = HostFields::set(&mut state, on(&list), "x".into(), bad);
    assert_eq!(refused(set), "syntax");
    let got = HostFields::get(&mut state, on(&list), "x".into()).unwrap();
    assert_eq!(got, [value("1")], "nothing was half done");
    HostFields::delete(&mut state, on(&list), "accept".into()).unwrap();
    let names: Vec<String> = HostFields::entries(&mut state, on(&list))
        .unwrap()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["x", "content-length"]);

    // Those of a message stay as they are; a copy does not.
    let request = HostOutgoingRequest::new(&mut state, list).unwrap();
    let headers = HostOutgoingRequest::headers(&mut state, request).unwrap();
    let deleted = HostFields::delete(&mut state, on(&headers), "x".into());
    assert_eq!(refused(deleted), "immutable");
    let copy = HostFields::clone(&mut state, headers).unwrap();
    HostFields::delete(&mut state, copy, "x".into()).unwrap();
}

#[test]
fn a_list_of_fields_is_limited() {
    let Scene { mut state, .. } = new_scene();
    let list = fields(&mut state);
    let append = |state: &mut State, length: usize| {
        HostFields::append(state, on(&list), "n".into(), vec![b'v'; length])
    };
    // Each costs its bytes and 64.
    append(&mut state, 8 * 1024 - 2 * 65).unwrap();
    append(&mut state, 0).unwrap();
    let Err(FieldsError::Trap(error)) = append(&mut state, 0) else {
        panic!("it was done");
    };
    assert!(matches!(error.downcast_ref(), Some(Halt::Hostcall(_))));
}

#[tokio::test]
async fn a_body_takes_so_much_and_what_its_headers_promise() {
    let Scene { mut state, .. } = new_scene();
    let chunk = vec![0; 65_536];
    let plain = request(&mut state, &[]);
    let body = HostOutgoingRequest::body(&mut state, on(&plain))
        .unwrap()
        .unwrap();
    assert!(
        HostOutgoingRequest::body(&mut state, plain)
            .unwrap()
            .is_err()
    );
    let stream = HostOutgoingBody::write(&mut state, on(&body))
        .unwrap()
        .unwrap();
    assert!(
        HostOutgoingBody::write(&mut state, on(&body))
            .unwrap()
            .is_err()
    );
    let write = HostOutputStream::write;
    for _ in 0..16 {
        assert!(state.check_write(on(&stream)).is_ok());
        assert!(write(&mut state, on(&stream), chunk.clone()).is_ok());
    }
    let full = |failed: StreamError| matches!(failed, StreamError::Failed(Failure::BodyFull));
    assert!(state.check_write(on(&stream)).is_err_and(full));
    assert!(write(&mut state, on(&stream), vec![0]).is_err_and(full));
    assert!(state.finish(body, None).await.unwrap().is_ok());

    for (promised, written, fits) in [("3", 3, true), ("3", 2, false), ("0", 0, true)] {
        let request = request(&mut state, &[("content-length", promised)]);
        let body = HostOutgoingRequest::body(&mut state, request)
            .unwrap()
            .unwrap();
        let stream = HostOutgoingBody::write(&mut state, on(&body))
            .unwrap()
            .unwrap();
        assert!(write(&mut state, stream, vec![0; written]).is_ok());
        assert_eq!(
            state.finish(body, None).await.unwrap().is_ok(),
            fits,
            "{promised}"
        );
    }
    for promised in ["", "+3", "3 ", "many"] {
        let request = request(&mut state, &[("content-length", promised)]);
        assert!(
            HostOutgoingRequest::body(&mut state, request)
                .unwrap()
                .is_err()
        );
    }
}
