//! The same random commands on the model and on SQLite must get the same answers.

use std::fmt::Debug;
use std::hash::{BuildHasher as _, RandomState};

use longshore_catalog::component::{Component, Digest};
use longshore_tasks::event::{Event, NewQuestion, Outcome};
use longshore_tasks::id::{Millis, NodeId};
use longshore_tasks::store::{Commit, Query, Segment};
use longshore_tasks::task::{Failure, Progress, StateName, Task, Usage};

use crate::kit::{
    Place, Stores, all_pages, component, first_segment, full_task, id, output, task, unfinished,
};

/// Commands of one sequence: enough that ids are taken, ended, forgotten and taken again.
const STEPS: usize = 250;

#[tokio::test]
async fn a_known_sequence_gets_equal_answers() {
    for seed in 1..=4 {
        run(seed).await;
    }
}

#[tokio::test]
async fn a_new_sequence_gets_equal_answers() {
    run(RandomState::new().hash_one(())).await;
}

async fn run(seed: u64) {
    let file = Place::sqlite();
    let mut world = World {
        dice: Dice(seed | 1),
        model: Place::memory().open(),
        other: file.open(),
    };
    for step in 0..STEPS {
        let (command, model, other) = world.command().await;
        assert_eq!(model, other, "seed {seed}, step {step}: {command}");
        if step % 50 == 49 {
            world.compare_all(seed, step).await;
            // The model has no file: only the other is closed and opened.
            drop(world.other);
            world.other = file.open();
        }
    }
}

struct World {
    dice: Dice,
    model: Stores,
    other: Stores,
}

/// Does the same with both, and gives what it was and both answers as text.
macro_rules! both {
    ($world:ident, $name:expr, |$store:ident| $call:expr) => {{
        let $store = &$world.model;
        let model = said(&$call.await);
        let $store = &$world.other;
        let other = said(&$call.await);
        ($name.to_string(), model, other)
    }};
}

fn said(answer: &impl Debug) -> String {
    format!("{answer:?}")
}

impl World {
    async fn command(&mut self) -> (String, String, String) {
        let dice = &mut self.dice;
        let n = dice.below(8);
        match dice.below(22) {
            0..=3 => {
                let mut new = if dice.one_in(2) {
                    task(n)
                } else {
                    full_task(n)
                };
                new.pinned.component = ["text", "maps"][dice.index(2)].to_owned();
                new.pinned.digest = Digest::of(&[dice.below(3) as u8]).to_string();
                new.created_at = Millis(dice.below(1_000) as i64);
                let first = dice.one_in(3).then(|| first_segment(dice.below(9)));
                new.journal.segments = u64::from(first.is_some());
                let printed = dice.one_in(3).then(|| output(dice.below(9)));
                both!(self, format!("create {n}"), |store| store.tasks.create(
                    new.clone(),
                    first.clone(),
                    printed.clone()
                ))
            }
            4..=12 => {
                let Ok(Some(row)) = self.model.tasks.get(id(n)).await else {
                    return both!(self, format!("get {n}"), |store| store.tasks.get(id(n)));
                };
                let commit = self.random_commit(&row);
                let name = format!("{commit:?}");
                both!(self, name, |store| store.tasks.commit(commit.clone()))
            }
            13 => {
                let query = self.random_query();
                let name = format!("{query:?}");
                both!(self, name, |store| all_pages(
                    store.tasks.as_ref(),
                    query.clone()
                ))
            }
            14 => {
                let node = NodeId(["node", "other"][dice.index(2)].into());
                let limit = dice.index(6);
                both!(self, "orphans", |store| store
                    .tasks
                    .orphans(node.clone(), limit))
            }
            15 => {
                let now = Millis(dice.below(4_000) as i64);
                // All of them: which of two that are over at the same time goes first is not agreed.
                both!(self, format!("sweep {now:?}"), |store| store
                    .tasks
                    .sweep(now, 100))
            }
            16 | 17 => {
                let bytes = [dice.below(3) as u8];
                let mut new = component(["a", "b", "c"][dice.index(3)], &bytes);
                new.installed_at_ms = dice.below(5) as i64;
                if dice.one_in(4) {
                    new.imports.clear();
                }
                let new: Component = new;
                let name = format!("install {} {}", new.name, new.digest);
                both!(self, name, |store| store
                    .components
                    .install(new.clone(), bytes.to_vec()))
            }
            18 => {
                let name = ["a", "b", "c"][dice.index(3)];
                both!(self, format!("remove {name}"), |store| store
                    .components
                    .remove(name.parse().unwrap()))
            }
            19 | 20 => {
                let limit = 1 + dice.index(5);
                both!(self, format!("unfinished {limit}"), |store| unfinished(
                    store.tasks.as_ref(),
                    limit
                ))
            }
            _ => both!(self, "collect", |store| store
                .components
                .collect(Vec::new())),
        }
    }

    fn random_commit(&mut self, row: &Task) -> Commit {
        let now = Millis(self.dice.below(2_000) as i64);
        let mut next = match row.apply(self.random_event(row), now) {
            Ok(step) => step.task,
            Err(_) => Task {
                version: row.version + 1,
                stalls: row.stalls + 1,
                ..row.clone()
            },
        };
        if self.dice.one_in(5) {
            next.lease.epoch += 1;
            next.lease.owner = [None, Some(NodeId("other".into()))][self.dice.index(2)].clone();
        }
        let dice = &mut self.dice;
        let journalled = dice.one_in(2).then(|| Segment {
            number: row.journal.segments,
            epoch: row.lease.epoch,
            ..first_segment(dice.below(50))
        });
        if let Some(segment) = &journalled {
            next.append(segment.last_call, dice.one_in(4), used(dice));
        }
        let mut commit = Commit {
            from_version: row.version,
            from_epoch: row.lease.epoch,
            task: next,
            segment: journalled,
            output: dice.one_in(4).then(|| output(dice.below(50))),
        };
        // Now and then from a row that was never there.
        let (segment, base) = (commit.segment.as_mut(), &mut commit.task.journal.base);
        match dice.below(30) {
            0 => commit.from_version += 1,
            1 => commit.from_version -= 1,
            2 => commit.from_epoch += 1,
            3 => commit.task.version = row.version,
            4 => commit.task.journal.segments += 1,
            5 => *base += 1,
            6 => *base = base.saturating_sub(1),
            7 => segment.into_iter().for_each(|segment| segment.number += 1),
            8 => segment.into_iter().for_each(|segment| segment.epoch += 1),
            _ => {}
        }
        commit
    }

    fn random_event(&mut self, row: &Task) -> Event {
        let dice = &mut self.dice;
        match dice.below(20) {
            0..=2 => Event::StatusChanged {
                message: dice.one_in(2).then(|| format!("at {}", dice.below(100))),
                progress: dice.one_in(2).then(|| Progress {
                    done: dice.below(1_000) as f64 / 8.0,
                    total: dice.one_in(2).then_some(125.0),
                }),
            },
            3..=5 => {
                let used = row.questions.len();
                let keys = (used..used + 1 + dice.index(3)).map(|key| format!("key-{key}"));
                let questions = keys.map(|key| NewQuestion {
                    key,
                    request: "{}".into(),
                });
                Event::Asked {
                    questions: questions.collect(),
                    wake_at: dice.one_in(2).then(|| Millis(dice.below(2_000) as i64)),
                }
            }
            6..=8 => {
                let open: Vec<_> = row
                    .open_questions()
                    .map(|question| question.key.clone())
                    .collect();
                let answer = |key| (key, format!("\"{}\"", dice.below(100)).into());
                Event::Answered(open.into_iter().map(answer).collect())
            }
            9 => Event::Withdrawn,
            10 => Event::CancelRequested,
            11..=13 => Event::Claimed {
                owner: NodeId(["node", "other"][dice.index(2)].into()),
            },
            14 if dice.one_in(2) => Event::Used { usage: used(dice) },
            14 => Event::Journalled { usage: used(dice) },
            15 => Event::Parked {
                wake_at: dice.one_in(2).then(|| Millis(dice.below(2_000) as i64)),
                usage: used(dice),
            },
            16 => Event::Released { usage: used(dice) },
            17 => Event::Died,
            18 => Event::Readmitted,
            _ => Event::Ended {
                outcome: match dice.below(3) {
                    0 => Outcome::Completed("[\"done\"]".into()),
                    1 => Outcome::Failed(Failure {
                        code: 1_001,
                        message: "trap".to_owned(),
                        data: dice.one_in(2).then(|| "{}".into()),
                    }),
                    _ => Outcome::Cancelled(None),
                },
                usage: used(dice),
            },
        }
    }

    fn random_query(&mut self) -> Query {
        let dice = &mut self.dice;
        Query {
            of: None,
            state: dice.one_in(2).then(|| StateName::ALL[dice.index(5)]),
            component: dice.one_in(3).then(|| "text".to_owned()),
            ids: dice.one_in(4).then(|| {
                let (one, other) = (id(dice.below(8)), id(dice.below(8)));
                (one.min(other), one.max(other))
            }),
            limit: 1 + dice.index(4),
            after: None,
        }
    }

    async fn compare_all(&self, seed: u64, step: usize) {
        let mut compared = Vec::new();
        for n in 0..8 {
            compared.push(both!(self, format!("get {n}"), |store| store
                .tasks
                .get(id(n))));
            compared.push(both!(self, format!("segments {n}"), |store| store
                .tasks
                .segments(id(n))));
            for number in 0..12 {
                let name = format!("segment {n} {number}");
                compared.push(both!(self, name, |store| store
                    .tasks
                    .segment(id(n), number)));
            }
            compared.push(both!(self, format!("output {n}"), |store| store
                .tasks
                .output(id(n))));
        }
        compared.push(both!(self, "installed", |store| store
            .components
            .installed()));
        for byte in 0..3 {
            let digest = Digest::of(&[byte]);
            compared.push(both!(self, "bytes", |store| store
                .components
                .bytes(digest.clone())));
        }
        let count = async |store: &Stores| store.tasks.figures().await.unwrap().unfinished;
        compared.push(both!(self, "count of unfinished", |store| count(store)));
        for (what, model, other) in compared {
            assert_eq!(model, other, "seed {seed}, after step {step}: {what}");
        }
    }
}

fn used(dice: &mut Dice) -> Usage {
    Usage {
        active_ms: dice.below(100),
        cpu_ms: dice.below(100),
    }
}

/// A small generator of numbers (xorshift64*), so that a seed says everything.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
