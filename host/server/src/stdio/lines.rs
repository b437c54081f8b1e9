//! Lines of a bounded length. One that is longer is skipped to its end, and what follows is read as ever.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// It was longer than it may be.
    TooLong,
}

/// The lines of an input.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    most: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Each of at most so many bytes.
    pub(super) fn new(input: R, most: usize) -> Self {
        Self {
            input: BufReader::new(input),
            most,
        }
    }

    /// The next line; none at the end. An input that breaks has ended. What stands behind the last end of a line is a
    /// line too: whoever wrote it may have forgotten the end.
    pub(super) async fn next(&mut self) -> Option<Line> {
        let mut line = Vec::new();
        let mut is_too_long = false;
        loop {
            let read = self.input.fill_buf().await.unwrap_or_default();
            if read.is_empty() {
                return match (is_too_long, line.is_empty()) {
                    (true, _) => Some(Line::TooLong),
                    (false, true) => None,
                    (false, false) => Some(Line::Whole(line)),
                };
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if line.len() + part.len() > self.most {
                is_too_long = true;
                // Its memory is not needed any more.
                line = Vec::new();
            }
            if !is_too_long {
                line.extend_from_slice(part);
            }
            let taken = part.len() + usize::from(end.is_some());
            self.input.consume(taken);
            if end.is_some() {
                return Some(if is_too_long {
                    Line::TooLong
                } else {
                    Line::Whole(line)
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Vec<Line> {
        let mut lines = Lines::new(text, 4);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await {
            read.push(line);
        }
        read
    }

    #[tokio::test]
    async fn lines_are_whole_or_too_long() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(read(b"").await, []);
        assert_eq!(read(b"\n").await, [whole("")]);
        assert_eq!(
            read(b"a\r\n\nabcd\nb").await,
            [whole("a\r"), whole(""), whole("abcd"), whole("b")]
        );
        assert_eq!(read(b"abcde\nabcd\n").await, [Line::TooLong, whole("abcd")]);
        assert_eq!(read(b"abcde").await, [Line::TooLong]);
        let long = [b"x".repeat(100_000), b"\nabc\n".to_vec()].concat();
        assert_eq!(read(&long).await, [Line::TooLong, whole("abc")]);
    }
}
