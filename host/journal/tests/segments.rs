//! The bytes of a journal are the same for ever: one golden line for every kind of record.

use longshore_journal::call::{Answer, Ask, AskError, Question};
use longshore_journal::http::{Blob, Failure, Outcome, Response, Sent};
use longshore_journal::record::{Bytes, Position, Record, Shown, What};
use longshore_journal::segment::{Header, Link, Reader, Unreadable, link, write};

const GOLDEN: &str = include_str!("golden/records.txt");

fn every_kind() -> Vec<(&'static str, What)> {
    let question = |key: &str, ask| Question {
        key: key.into(),
        ask,
    };
    let at = Position {
        clock: 300,
        random: 16,
        insecure: 8,
        cancelled: true,
        path: 0x0102_0304_0506_0708,
        asked: 2,
        progress: Some(0.5),
    };
    vec![
        ("clock", What::Clock(300)),
        ("cancelled", What::Cancelled),
        (
            "waited",
            What::Waited {
                until: 1_000,
                path: 7,
            },
        ),
        ("woke", What::Woke(1_001)),
        (
            "asked",
            What::Asked {
                questions: vec![
                    question(
                        "a",
                        Ask::Form {
                            message: "m".into(),
                            schema: "{}".into(),
                        },
                    ),
                    question(
                        "b",
                        Ask::Url {
                            message: "m".into(),
                            url: "https://e".into(),
                        },
                    ),
                    question("c", Ask::Sample("{}".into())),
                    question("d", Ask::Roots(None)),
                    question("e", Ask::Raw("{}".into())),
                ],
                until: Some(5),
                path: 7,
            },
        ),
        (
            "answered",
            What::Answered(Ok(vec![
                Answer::Accepted(Some("{}".into())),
                Answer::Accepted(None),
                Answer::Declined,
                Answer::Dismissed,
                Answer::Sampled("{}".into()),
                Answer::Roots("{}".into()),
                Answer::Raw("{}".into()),
            ])),
        ),
        (
            "unsupported",
            What::Answered(Err(AskError::Unsupported("u".into()))),
        ),
        (
            "invalid",
            What::Answered(Err(AskError::Invalid("i".into()))),
        ),
        ("limit", What::Answered(Err(AskError::Limit("l".into())))),
        ("timed-out", What::Answered(Err(AskError::TimedOut))),
        (
            "call-cancelled",
            What::Answered(Err(AskError::CallCancelled)),
        ),
        (
            "shown",
            What::Shown {
                shown: Shown {
                    message: Some("half".into()),
                    progress: Some((0.5, Some(1.0))),
                },
                path: 7,
            },
        ),
        (
            "step",
            What::Step {
                began: 3,
                name: "s".into(),
                value: Bytes(vec![1, 2]),
                at,
            },
        ),
        (
            "checkpoint",
            What::Checkpoint {
                state: Bytes(vec![3]),
                at,
            },
        ),
        (
            "ended",
            What::Ended {
                result: [9; 16],
                path: 7,
            },
        ),
        (
            "sent",
            What::Sent {
                sent: Sent {
                    exchange: 3,
                    method: "POST".into(),
                    url: "https://e/".into(),
                    body_bytes: 300,
                    is_write: true,
                },
                path: 7,
            },
        ),
        (
            "came",
            came(Ok(Response {
                status: 200,
                fields: vec![("a".into(), Blob::from(vec![1]))],
                body: Blob::from(vec![2, 3]),
            })),
        ),
        ("dns-timeout", came(Err(Failure::DnsTimeout))),
        ("dns-error", came(Err(Failure::DnsError))),
        (
            "address-prohibited",
            came(Err(Failure::AddressProhibited("a".into()))),
        ),
        ("refused", came(Err(Failure::Refused))),
        ("connect-timeout", came(Err(Failure::ConnectTimeout))),
        ("terminated", came(Err(Failure::Terminated))),
        ("certificate", came(Err(Failure::Certificate("c".into())))),
        ("tls", came(Err(Failure::Tls("t".into())))),
        ("response-timeout", came(Err(Failure::ResponseTimeout))),
        ("head-too-large", came(Err(Failure::HeadTooLarge(300)))),
        ("body-too-large", came(Err(Failure::BodyTooLarge(300)))),
        ("protocol", came(Err(Failure::Protocol))),
        ("connection-limit", came(Err(Failure::ConnectionLimit))),
        ("secret", came(Err(Failure::Secret("s".into())))),
        ("outcome-unknown", came(Err(Failure::OutcomeUnknown))),
        ("unfinished", came(Err(Failure::Unfinished))),
    ]
}

fn came(outcome: Outcome) -> What {
    What::Came {
        exchange: 3,
        outcome,
    }
}

fn header(previous: Link) -> Header {
    Header {
        host_abi: 2,
        node: "n".into(),
        written_at_ms: 1_000,
        previous,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_kind_has_the_bytes_that_it_always_had() {
    let lines: Vec<String> = every_kind()
        .into_iter()
        .map(|(name, what)| {
            let (bytes, _) = write(&header(Link::default()), &[Record { call: 5, what }]);
            format!("{name} {}", hex(&bytes))
        })
        .collect();
    let golden: Vec<&str> = GOLDEN.lines().collect();
    assert_eq!(lines, golden);
}

#[test]
fn what_is_written_is_read() {
    for (name, what) in every_kind() {
        let records = [Record { call: 5, what }];
        let header = header(Link::default());
        let (bytes, _) = write(&header, &records);
        let read = Reader::new(true).read(0, &bytes).unwrap();
        assert_eq!(
            (read.header, read.records),
            (header, records.to_vec()),
            "{name}"
        );
    }
}

#[test]
fn a_journal_with_a_piece_missing_doubled_or_changed_is_refused() {
    let records = |n| {
        [Record {
            call: n,
            what: What::Clock(n),
        }]
    };
    let (first, to_first) = write(&header(Link::default()), &records(1));
    let (second, to_second) = write(&header(to_first), &records(2));
    let (third, _) = write(&header(to_second), &records(3));
    assert_eq!(link(&second), to_second);

    let read = |from_start, parts: &[&[u8]]| {
        let mut reader = Reader::new(from_start);
        (0..)
            .zip(parts)
            .find_map(|(number, bytes)| reader.read(number, bytes).err())
    };
    assert_eq!(read(true, &[&first, &second, &third]), None);
    // Behind a restart point what came before is gone.
    assert_eq!(read(false, &[&second, &third]), None);
    let chain = |number| Some(Unreadable::Chain { number });
    assert_eq!(read(true, &[&second]), chain(0));
    assert_eq!(read(true, &[&first, &third]), chain(1));
    assert_eq!(read(true, &[&first, &first]), chain(1));
    assert_eq!(read(true, &[&first, &third, &second]), chain(1));

    // Every single bit counts, if only for the segment after it.
    for at in 0..second.len() {
        let mut changed = second.clone();
        changed[at] ^= 1;
        assert!(
            read(true, &[&first, &changed, &third]).is_some(),
            "byte {at}"
        );
    }
    for length in 0..second.len() {
        assert!(
            read(true, &[&first, &second[..length]]).is_some(),
            "length {length}"
        );
    }
    let mut newer = second;
    newer[0] += 1;
    assert_eq!(
        read(true, &[&first, &newer]),
        Some(Unreadable::Format {
            number: 1,
            format: 4
        })
    );
    // A kind that this version does not know.
    let (mut unknown, _) = write(
        &header(Link::default()),
        &[Record {
            call: 1,
            what: What::Cancelled,
        }],
    );
    *unknown.last_mut().unwrap() = 200;
    assert!(matches!(
        read(true, &[&unknown]),
        Some(Unreadable::Damaged { .. })
    ));
}
