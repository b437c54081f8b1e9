//! The edge to clients, where the conformance suite does not look: what they write that is wrong, who hears of what, those
//! who are many, and those who are gone without anybody having said so.

mod dead;
mod many;
mod news;
mod parameters;
mod trace;
