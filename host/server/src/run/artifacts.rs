//! What a run leaves for whoever called, and how that is read again.

use longshore_journal::values::{Failure, Found, Outcome};
use longshore_policy::limits::Limits;
use longshore_protocol::content::Body;
use longshore_protocol::resource::{self, Contents};
use longshore_protocol::result::{CacheHint, CacheScope, ServerInfo};
use longshore_tasks::artifacts::{Artifact, ArtifactId, ArtifactStore, Put, Room};

use super::values::Patience;

/// What the URI of each begins with.
const PREFIX: &str = "longshore://artifacts/";

/// It never becomes other bytes; but whoever may not read it must not find it in somebody else's cache.
const READ: CacheHint = CacheHint {
    ttl_ms: 3_600_000,
    scope: CacheScope::Private,
};

/// Where one is read.
pub(crate) fn uri(id: ArtifactId) -> String {
    format!("{PREFIX}{id}")
}

/// Whether a URI is one of an artifact, and of which, if there can be one.
pub(crate) fn named(uri: &str) -> Option<Option<ArtifactId>> {
    Some(uri.strip_prefix(PREFIX)?.parse().ok())
}

/// What a call has room for.
pub(crate) fn room(limits: &Limits) -> Room {
    Room {
        count: limits.artifacts,
        bytes: limits.artifacts_bytes,
    }
}

/// What a guest is told.
pub(crate) fn told(id: ArtifactId, put: Put) -> Outcome {
    match put {
        Put::Kept => Ok(Found::Uri(uri(id))),
        Put::TooMany(most) => Err(Failure::Limit(format!(
            "a call may leave {most} artifacts, and has left that many (limits.artifacts)"
        ))),
        Put::TooManyBytes(most) => Err(Failure::Limit(format!(
            "a call may leave {most} bytes in artifacts, and with these it would leave more (limits.artifacts_mib)"
        ))),
    }
}

/// Keeps one, however long the store cannot be used.
pub(crate) async fn leave(
    store: &dyn ArtifactStore,
    artifact: Artifact,
    limits: &Limits,
) -> Outcome {
    let mut patience = Patience::of(artifact.call);
    loop {
        match store.put(artifact.clone(), room(limits)).await {
            Ok(put) => return told(artifact.id, put),
            Err(error) => patience.wait(error).await,
        }
    }
}

/// The result of reading one.
pub(crate) fn read_result(artifact: &Artifact, info: &ServerInfo) -> String {
    let text = is_text(&artifact.mime_type)
        .then(|| str::from_utf8(&artifact.data).ok())
        .flatten();
    let uri = uri(artifact.id);
    let contents = Contents {
        uri: &uri,
        mime_type: Some(&artifact.mime_type),
        body: text.map_or(Body::Blob(&artifact.data), Body::Text),
        meta: None,
    };
    resource::read_result(&[contents], READ, info)
}

/// Whether a media type is one of text: by itself, or by what it is written in.
fn is_text(mime_type: &str) -> bool {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    let Some((kind, form)) = essence.split_once('/') else {
        return false;
    };
    let written_in = form.rsplit_once('+').map_or(form, |(_, suffix)| suffix);
    let is = |word: &str| written_in.eq_ignore_ascii_case(word);
    kind.eq_ignore_ascii_case("text") || is("json") || is("xml")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn text_is_told_by_its_media_type() {
        for (mime_type, expected) in [
            ("text/plain", true),
            ("text/csv; charset=utf-8", true),
            ("TEXT/HTML", true),
            ("application/json", true),
            ("application/problem+json", true),
            ("image/svg+XML", true),
            ("application/xml;x=y", true),
            ("application/octet-stream", false),
            ("image/png", false),
            ("application/jsonish", false),
            ("json", false),
            ("", false),
        ] {
            assert_eq!(is_text(mime_type), expected, "{mime_type:?}");
        }
    }

    #[test]
    fn text_is_served_as_text_and_all_else_as_bytes() {
        let info = ServerInfo::new("longshore", "0");
        for (mime_type, data, expected) in [
            (
                "text/plain",
                &b"a\"b"[..],
                r#""mimeType":"text/plain","text":"a\"b""#,
            ),
            // Whatever it says that it is.
            (
                "text/plain",
                b"\xff\xfe",
                r#""mimeType":"text/plain","blob":"//4=""#,
            ),
            (
                "image/png",
                b"abc",
                r#""mimeType":"image/png","blob":"YWJj""#,
            ),
            (
                "application/json",
                b"",
                r#""mimeType":"application/json","text":"""#,
            ),
        ] {
            let artifact = Artifact {
                id: ArtifactId(Uuid::nil()),
                call: longshore_tasks::id::TaskId(Uuid::nil()),
                tenant: longshore_tasks::id::Tenant("t".into()),
                principal: longshore_tasks::id::Principal("p".into()),
                name: "n".to_owned(),
                mime_type: mime_type.to_owned(),
                data: data.to_vec(),
            };
            let result = read_result(&artifact, &info);
            let uri = uri(artifact.id);
            let contents = format!(r#""contents":[{{"uri":"{uri}",{expected}}}]"#);
            assert!(result.contains(&contents), "{result}");
        }
    }

    #[test]
    fn a_uri_names_one_artifact_or_none() {
        let id = ArtifactId(Uuid::from_u128(0x1234_5678_9abc_4def_8123_4567_89ab_cdef));
        assert_eq!(named(&uri(id)), Some(Some(id)));
        for (other, expected) in [
            ("longshore://artifacts/", Some(None)),
            (
                "longshore://artifacts/12345678-9ABC-4def-8123-456789abcdef",
                Some(None),
            ),
            ("longshore://artifacts/../x", Some(None)),
            ("longshore://artifact/", None),
            ("file:///longshore://artifacts/", None),
        ] {
            assert_eq!(named(other), expected, "{other}");
        }
    }
}
