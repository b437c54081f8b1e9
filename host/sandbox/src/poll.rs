//! A request that is sent again and again until its response is what somebody waits for: data, so that nobody needs the
//! guest to go on with it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue, Uri};
use longshore_journal::http::Response;
use longshore_policy::policy::Policy;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::grants::Grants;
use crate::outside::{Bounds, Outgoing};
use crate::wasi::http::{Asked, FORBIDDEN, Refused, Terms, Timeouts};

/// A URL, and all fields together, as the interface says.
const URL_BYTES: usize = 8 * 1024;
const FIELDS_BYTES: usize = 8 * 1024;
/// A pointer, as the interface says.
const POINTER_BYTES: usize = 1024;
/// Statuses or values, as the interface says.
const MOST_VALUES: usize = 16;
/// A response is kept as an answer, in base64: this much of a body leaves room for its head.
const BODY_BYTES: u64 = 512 * 1024;
const HEAD_BYTES: u64 = 32 * 1024;
/// One attempt. There is another, and others wait for their turn.
const ATTEMPT_MS: u64 = 30_000;

/// What is sent, how often, and until when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poll {
    /// The method.
    pub method: String,
    /// Where it goes.
    pub url: String,
    /// Its fields.
    pub headers: Vec<(String, String)>,
    /// From one to the next.
    pub every_ms: u64,
    /// Until the first.
    pub first_ms: u64,
    /// What is waited for.
    pub until: Until,
}

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Until {
    /// One of these statuses.
    Status(Vec<u16>),
    /// One of these values at that pointer.
    Equals {
        /// Where.
        pointer: String,
        /// What.
        values: Vec<Value>,
    },
    /// Any response that is one.
    Success,
    /// A response that is not what it was.
    Differs {
        /// Where; the whole body if nowhere.
        pointer: Option<String>,
        /// A mark of what it was.
        from: String,
    },
}

/// A response as it is kept for the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Met {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub headers: Vec<(String, String)>,
    /// Its body, in base64.
    pub body: String,
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotSent {
    /// What the guest is told.
    pub told: String,
    /// What whoever reads the log is told.
    pub why: String,
}

impl Poll {
    /// What is malformed in it, for its author.
    pub(crate) fn fault(&self) -> Option<String> {
        if self.url.len() > URL_BYTES {
            return Some(format!("the URL has more than {URL_BYTES} bytes"));
        }
        if let Err(fault) = parts(&self.url) {
            return Some(fault);
        }
        let bytes: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.len() + value.len())
            .sum();
        if bytes > FIELDS_BYTES {
            return Some(format!("the fields have more than {FIELDS_BYTES} bytes"));
        }
        for (name, value) in &self.headers {
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                return Some(format!("{name:?} is no name of a field"));
            };
            if FORBIDDEN.contains(&name.as_str()) || name == http::header::CONTENT_LENGTH {
                return Some(format!("the field {name} is for whoever sends it"));
            }
            if HeaderValue::from_str(value).is_err() {
                return Some(format!("the value of the field {name} is none"));
            }
        }
        let count = |count: usize| {
            (!(1..=MOST_VALUES).contains(&count))
                .then(|| format!("{count} values to wait for; it has 1 to {MOST_VALUES}"))
        };
        match &self.until {
            Until::Status(statuses) => count(statuses.len()),
            Until::Equals { pointer, values } => {
                count(values.len()).or_else(|| pointer_fault(pointer))
            }
            Until::Differs { pointer, .. } => pointer.as_deref().and_then(pointer_fault),
            Until::Success => None,
        }
    }

    /// The request, if that policy lets it be sent and it changes nothing; else the reason why not.
    ///
    /// # Errors
    ///
    /// Why not.
    pub fn outgoing(&self, policy: &Policy) -> Result<Outgoing, NotSent> {
        self.judged(&Terms::of(&Grants::of(policy.clone(), &Default::default())))
    }

    pub(crate) fn judged(&self, terms: &Terms) -> Result<Outgoing, NotSent> {
        let same = |why: String| NotSent {
            told: why.clone(),
            why,
        };
        let parts = parts(&self.url).map_err(same)?;
        let asked = Asked {
            method: &self.method,
            scheme: Some(&parts.scheme),
            authority: &parts.authority,
            path: parts.path,
            fields: self
                .headers
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), value.clone().into_bytes()))
                .collect(),
            timeouts: Timeouts::default(),
        };
        let judged = terms
            .judge(0, asked)
            .map_err(|refusal| match refusal.what {
                // What else is granted is not for it to know.
                Refused::Denied => NotSent {
                    told: "its operator can grant it".to_owned(),
                    why: refusal.why,
                },
                _ => same(refusal.why),
            })?;
        if judged.is_write {
            return Err(same(format!(
                "{} {} may change something, and nothing is sent again and again that does",
                self.method, self.url
            )));
        }
        let Outgoing { bounds, .. } = judged.outgoing;
        Ok(Outgoing {
            bounds: Bounds {
                body_bytes: bounds.body_bytes.min(BODY_BYTES),
                head_bytes: bounds.head_bytes.min(HEAD_BYTES),
                whole_ms: bounds.whole_ms.min(ATTEMPT_MS),
                ..bounds
            },
            ..judged.outgoing
        })
    }

    /// Whether that response is what is waited for.
    #[must_use]
    pub fn is_met(&self, response: &Response) -> bool {
        let is_success = (200..300).contains(&response.status);
        match &self.until {
            Until::Status(statuses) => statuses.contains(&response.status),
            Until::Equals { pointer, values } => {
                let body = serde_json::from_slice::<Value>(&response.body).ok();
                let there = body.as_ref().and_then(|body| body.pointer(pointer));
                there.is_some_and(|there| values.iter().any(|value| is_same(value, there)))
            }
            Until::Success => is_success,
            Until::Differs { pointer, from } => {
                is_success && mark(&response.body, pointer.as_deref()) != *from
            }
        }
    }
}

impl Met {
    /// What is kept of a response.
    #[must_use]
    pub fn of(response: &Response) -> Self {
        let text = |(name, value): &(String, longshore_journal::http::Blob)| {
            Some((name.clone(), str::from_utf8(value).ok()?.to_owned()))
        };
        Self {
            status: response.status,
            headers: response.fields.iter().filter_map(text).collect(),
            body: BASE64_STANDARD.encode(&response.body[..]),
        }
    }

    /// Its body as it came.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        BASE64_STANDARD.decode(&self.body).ok()
    }
}

/// A word that differs when what stands there does.
pub(crate) fn mark(body: &[u8], pointer: Option<&str>) -> String {
    let hash = match pointer {
        None => blake3::hash(body),
        Some(pointer) => {
            let body = serde_json::from_slice::<Value>(body).ok();
            match body.as_ref().and_then(|body| body.pointer(pointer)) {
                Some(there) => blake3::hash(there.to_string().as_bytes()),
                None => blake3::hash(b""),
            }
        }
    };
    hash.to_hex()[..32].to_owned()
}

/// Whether two values are the same, however their numbers are written.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        _ => one == other,
    }
}

fn pointer_fault(pointer: &str) -> Option<String> {
    if pointer.len() > POINTER_BYTES {
        return Some(format!("the pointer has more than {POINTER_BYTES} bytes"));
    }
    (!pointer.is_empty() && !pointer.starts_with('/'))
        .then(|| format!("{pointer:?} is no JSON pointer: it begins with a slash, such as /status"))
}

struct Parts {
    scheme: String,
    authority: String,
    path: String,
}

fn parts(url: &str) -> Result<Parts, String> {
    let uri: Uri = url
        .parse()
        .map_err(|error| format!("{url:?} is no URL: {error}"))?;
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(format!(
            "{url:?} is no absolute URL, such as https://example.org/"
        ));
    };
    let path = uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str);
    Ok(Parts {
        scheme: scheme.to_owned(),
        authority: authority.as_str().to_owned(),
        path: if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        },
    })
}

#[cfg(test)]
mod tests {
    use longshore_policy::grant::Grant;
    use longshore_policy::limits::Limits;
    use longshore_policy::policy::Tenant;
    use serde_json::json;

    use super::*;

    fn until(until: Until) -> Poll {
        Poll {
            method: "GET".to_owned(),
            url: "https://example.org/job?n=1".to_owned(),
            headers: Vec::new(),
            every_ms: 1_000,
            first_ms: 0,
            until,
        }
    }

    fn response(status: u16, body: &str) -> Response {
        Response {
            status,
            fields: vec![
                ("etag".to_owned(), b"x".to_vec().into()),
                ("odd".to_owned(), vec![0xff].into()),
            ],
            body: body.as_bytes().to_vec().into(),
        }
    }

    #[test]
    fn conditions() {
        let done = Until::Equals {
            pointer: "/job/state".to_owned(),
            values: vec![json!("done"), json!(2)],
        };
        let differs = |pointer: Option<&str>| Until::Differs {
            pointer: pointer.map(str::to_owned),
            from: mark(br#"{"a":1,"b":2}"#, pointer),
        };
        let rows = [
            (Until::Status(vec![404, 410]), response(410, ""), true),
            (Until::Status(vec![404, 410]), response(200, ""), false),
            (
                done.clone(),
                response(200, r#"{"job":{"state":"done"}}"#),
                true,
            ),
            (
                done.clone(),
                response(500, r#"{"job":{"state":2.0}}"#),
                true,
            ),
            (
                done.clone(),
                response(200, r#"{"job":{"state":"2"}}"#),
                false,
            ),
            (done.clone(), response(200, r#"{"job":{}}"#), false),
            (done, response(200, "no JSON"), false),
            (Until::Success, response(204, ""), true),
            (Until::Success, response(304, ""), false),
            (differs(None), response(200, r#"{"a":1,"b":2}"#), false),
            (differs(None), response(200, r#"{"a":1,"b":3}"#), true),
            (differs(None), response(503, "down for a moment"), false),
            (
                differs(Some("/a")),
                response(200, r#"{"a":1,"b":3}"#),
                false,
            ),
            (differs(Some("/a")), response(200, r#"{"b":2}"#), true),
        ];
        for (condition, response, is_met) in rows {
            let shown = format!("{condition:?} by {response:?}");
            assert_eq!(until(condition).is_met(&response), is_met, "{shown}");
        }
    }

    type Change = fn(&mut Poll);

    #[test]
    fn what_is_malformed_is_said() {
        let with = |change: Change| {
            let mut poll = until(Until::Status(vec![200]));
            change(&mut poll);
            poll.fault()
        };
        assert_eq!(with(|_| {}), None);
        let rows: [(Change, &str); 8] = [
            (|poll| poll.url = "/relative".to_owned(), "absolute"),
            (|poll| poll.url = "https://a b/".to_owned(), "no URL"),
            (
                |poll| poll.url = format!("https://example.org/{}", "x".repeat(9_000)),
                "8192",
            ),
            (
                |poll| poll.headers = vec![("Host".to_owned(), "x".to_owned())],
                "whoever sends",
            ),
            (
                |poll| poll.headers = vec![("x".to_owned(), "a\nb\n".replace("\\n", "\n"))],
                "none",
            ),
            (|poll| poll.until = Until::Status(Vec::new()), "1 to 16"),
            (|poll| poll.until = Until::Status(vec![200; 17]), "1 to 16"),
            (
                |poll| {
                    poll.until = Until::Equals {
                        pointer: "status".to_owned(),
                        values: vec![json!(1)],
                    };
                },
                "slash",
            ),
        ];
        for (change, expected) in rows {
            let fault = with(change).expect("it is malformed");
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn only_what_the_policy_lets_be_sent_and_what_changes_nothing() {
        let grant = "[[http]]\nhost = \"example.org\"\nmethods = [\"GET\", \"POST\"]\n";
        let grant = Grant::of_toml(grant).unwrap();
        let policy = Policy::in_force(None, &grant, &Tenant::default(), &Limits::default());
        let poll = until(Until::Success);
        let outgoing = poll.outgoing(&policy).unwrap();
        assert_eq!(outgoing.path, "/job?n=1");
        assert_eq!(outgoing.bounds.body_bytes, BODY_BYTES);
        let refused = |change: Change| {
            let mut poll = poll.clone();
            change(&mut poll);
            poll.outgoing(&policy).unwrap_err()
        };
        assert!(
            refused(|poll| poll.method = "POST".to_owned())
                .told
                .contains("may change")
        );
        let other = refused(|poll| poll.url = "https://other.org/".to_owned());
        assert!(
            other.why.contains("other.org") && !other.told.contains("granted"),
            "{other:?}"
        );
    }

    #[test]
    fn what_is_kept_of_a_response_is_what_came() {
        let met = Met::of(&response(200, "\u{0}text"));
        assert_eq!(met.headers, [("etag".to_owned(), "x".to_owned())]);
        assert_eq!(met.bytes().unwrap(), b"\0text");
    }
}
