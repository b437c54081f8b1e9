//! Waiting for something to become true, with a bound, instead of sleeping and hoping.

use std::future::Future;
use std::time::{Duration, Instant};

/// Asks until there is an answer.
///
/// # Panics
/// If there is none within `most`.
pub async fn until<T, F>(what: &str, most: Duration, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let started = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(started.elapsed() < most, "{what}: not within {most:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
