//! Request bodies with a bound on their size and on how long they may pause.

use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;

use crate::reason::RequestReason;

/// The least that a body must bring, in bytes a second, once its first pause is over: far below the
/// slowest network, and enough that nobody holds a connection for days with a byte now and then.
const LEAST_RATE: u64 = 4 * 1024;
/// For how long a body that is refused for its size is still taken in, so that whoever sends it gets
/// to read the answer instead of finding the connection broken.
const TAKEN_IN_FOR: Duration = Duration::from_secs(2);

/// How large a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Most {
    /// The setting that says so.
    key: &'static str,
    bytes: usize,
}

impl Most {
    /// So many bytes, by that setting.
    pub(super) fn of(key: &'static str, bytes: usize) -> Self {
        Self { key, bytes }
    }
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is larger than allowed.
    TooLarge(Most),
    /// It paused for too long.
    TooSlow,
    /// The connection broke.
    Broken,
    /// It is compressed.
    Encoded,
}

impl BodyError {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    pub(super) fn reason(self) -> RequestReason {
        match self {
            Self::TooLarge(_) => RequestReason::TooLarge,
            Self::TooSlow => RequestReason::TooSlow,
            Self::Broken => RequestReason::Broken,
            Self::Encoded => RequestReason::Encoding,
        }
    }

    pub(super) fn message(self) -> String {
        match self {
            Self::TooLarge(Most { key, bytes }) => format!(
                "the request body is larger than {bytes} bytes: send less, or raise the server's setting {key}"
            ),
            Self::TooSlow => "the request body came too slowly".to_owned(),
            Self::Broken => "the request body ended before its time".to_owned(),
            Self::Encoded => "the request body is compressed: send it as it is".to_owned(),
        }
    }
}

/// Reads a body to its end.
pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    most: Most,
    pause: Duration,
) -> Result<Vec<u8>, BodyError> {
    if headers
        .get(header::CONTENT_ENCODING)
        .is_some_and(|encoding| encoding != "identity")
    {
        return Err(BodyError::Encoded);
    }
    // An honest length is refused before a byte of the body is read.
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok())
        .and_then(|length| length.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most.bytes) {
        tokio::spawn(take_in(body, most.bytes));
        return Err(BodyError::TooLarge(most));
    }
    let began = Instant::now();
    let mut read = Vec::with_capacity(announced.unwrap_or(0));
    loop {
        let brought = Duration::from_secs(read.len() as u64 / LEAST_RATE);
        let left = (pause + brought).saturating_sub(began.elapsed());
        let frame = match tokio::time::timeout(left.min(pause), body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => return Ok(read),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            if read.len() + data.len() > most.bytes {
                tokio::spawn(take_in(body, most.bytes));
                return Err(BodyError::TooLarge(most));
            }
            read.extend_from_slice(&data);
        }
    }
}

/// As many bytes as were allowed once more: who sends without end finds the connection broken after all.
async fn take_in(mut body: Body, most: usize) {
    let all = async {
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await {
            taken += frame.data_ref().map_or(0, bytes::Bytes::len);
            if taken > most {
                break;
            }
        }
    };
    let _the_connection_ends_then = tokio::time::timeout(TAKEN_IN_FOR, all).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most {
        key: "key",
        bytes: 4,
    };

    async fn check(
        headers: &[(header::HeaderName, &'static str)],
        body: Body,
    ) -> Result<Vec<u8>, BodyError> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect();
        read(&headers, body, MOST, Duration::from_millis(50)).await
    }

    #[tokio::test]
    async fn bounds_at_and_over() {
        assert_eq!(check(&[], Body::from("1234")).await, Ok(b"1234".to_vec()));
        assert_eq!(
            check(&[], Body::from("12345")).await,
            Err(BodyError::TooLarge(MOST))
        );
        let length = (header::CONTENT_LENGTH, "5");
        assert_eq!(
            check(&[length], Body::empty()).await,
            Err(BodyError::TooLarge(MOST))
        );
        let gzip = (header::CONTENT_ENCODING, "gzip");
        assert_eq!(
            check(&[gzip], Body::from("1")).await,
            Err(BodyError::Encoded)
        );
    }

    #[tokio::test]
    async fn a_body_that_stands_still_is_given_up() {
        let never = futures_util::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
        assert_eq!(
            check(&[], Body::from_stream(never)).await,
            Err(BodyError::TooSlow)
        );
    }

    #[tokio::test]
    async fn a_body_that_drips_is_given_up_as_well() {
        let drops = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok::<_, std::io::Error>(bytes::Bytes::from_static(b"x")), ()))
        });
        let headers = HeaderMap::new();
        let dripping = read(
            &headers,
            Body::from_stream(drops),
            Most::of("key", 1_000_000),
            Duration::from_millis(100),
        );
        assert_eq!(dripping.await, Err(BodyError::TooSlow));
    }
}
