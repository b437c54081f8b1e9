//! Request bodies with a bound on their size and on how long they may pause.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    /// It is larger than allowed.
    TooLarge {
        /// The bound, in bytes.
        most: usize,
    },
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
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
            Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }

    pub(super) fn message(self) -> String {
        match self {
            Self::TooLarge { most } => format!("the request body is larger than {most} bytes"),
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
    most: usize,
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
    if announced.is_some_and(|length| length > most) {
        return Err(BodyError::TooLarge { most });
    }
    let mut read = Vec::with_capacity(announced.unwrap_or(0));
    loop {
        let frame = match tokio::time::timeout(pause, body.frame()).await {
            Err(_) => return Err(BodyError::TooSlow),
            Ok(None) => return Ok(read),
            Ok(Some(Err(_))) => return Err(BodyError::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            if read.len() + data.len() > most {
                return Err(BodyError::TooLarge { most });
            }
            read.extend_from_slice(&data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(
        headers: &[(header::HeaderName, &'static str)],
        body: Body,
    ) -> Result<Vec<u8>, BodyError> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()))
            .collect();
        read(&headers, body, 4, Duration::from_millis(50)).await
    }

    #[tokio::test]
    async fn bounds_at_and_over() {
        assert_eq!(check(&[], Body::from("1234")).await, Ok(b"1234".to_vec()));
        assert_eq!(
            check(&[], Body::from("12345")).await,
            Err(BodyError::TooLarge { most: 4 })
        );
        let length = (header::CONTENT_LENGTH, "5");
        assert_eq!(
            check(&[length], Body::empty()).await,
            Err(BodyError::TooLarge { most: 4 })
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
}
