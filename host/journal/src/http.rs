//! Exchanges over HTTP, as far as a guest sees them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A request that is sent for a guest. It is kept before one is sent that may change something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Names the exchange: the call that made it.
    pub exchange: u64,
    /// The method.
    pub method: String,
    /// Where it goes, without what stands for a secret.
    pub url: String,
    /// How large its body is.
    pub body_bytes: u64,
    /// Whether it may change something.
    pub is_write: bool,
}

/// What came of an exchange.
pub type Outcome = Result<Response, Failure>;

/// A whole response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its fields, in the order in which they came; names are in lower case.
    pub fields: Vec<(String, Blob)>,
    /// Its body.
    pub body: Blob,
}

impl Response {
    /// About how much memory it takes, besides its own size.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = 64;
        let fields = self.fields.iter();
        let fields = fields.map(|(name, value)| name.len() + value.len() + EACH);
        fields.sum::<usize>() + self.body.len()
    }
}

/// Why an exchange has no response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// The name could not be resolved in time.
    #[error("the name was not resolved in time")]
    DnsTimeout,
    /// There is no such name, or nobody who knows.
    #[error("the name cannot be resolved")]
    DnsError,
    /// It leads where nobody is to be reached.
    #[error("it leads where nobody is to be reached: {0}")]
    AddressProhibited(String),
    /// Nobody takes the connection.
    #[error("the connection is refused")]
    Refused,
    /// Nobody answers the connection in time.
    #[error("there was no connection in time")]
    ConnectTimeout,
    /// The connection broke.
    #[error("the connection broke")]
    Terminated,
    /// The host does not prove who it is.
    #[error("its certificate is not good: {0}")]
    Certificate(String),
    /// There is no agreement about how to encrypt.
    #[error("TLS failed: {0}")]
    Tls(String),
    /// The response did not come, or did not go on, in time.
    #[error("there was no response in time")]
    ResponseTimeout,
    /// The head of the response is larger than allowed.
    #[error("the head of the response is larger than {0} bytes")]
    HeadTooLarge(u64),
    /// The body of the response is larger than allowed.
    #[error("the body of the response is larger than {0} bytes")]
    BodyTooLarge(u64),
    /// What came is no HTTP.
    #[error("the response is no HTTP")]
    Protocol,
    /// There are too many connections.
    #[error("there are as many connections as may be")]
    ConnectionLimit,
    /// It carries a secret that cannot be had.
    #[error("it carries secret {0}, which cannot be had")]
    Secret(String),
    /// It may have been done and may be done yet: whoever sent it is gone.
    #[error("outcome-unknown: the request may have been carried out, and may be yet")]
    OutcomeUnknown,
    /// The guest let go of it before it was complete.
    #[error("its body was never finished")]
    Unfinished,
    /// It carries a secret, and everybody on the way could read it.
    #[error(
        "it carries secret {0}, which is sent over https only: whoever granted it can say `plain = true` of it"
    )]
    PlainSecret(String),
}

impl Failure {
    /// The most memory that one takes, besides its own size: what it quotes is short.
    pub(crate) const BYTES: usize = 200;
}

/// Bytes that several hold, written as such and not one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blob(Arc<Vec<u8>>);

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl std::ops::Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Serialize for Blob {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::record::Bytes::deserialize(deserializer).map(|bytes| Self::from(bytes.0))
    }
}
