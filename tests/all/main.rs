//! The house as a whole: real processes, real components, clients that are not ours.

mod carriers;
mod command;
mod gone;
mod guests;
mod house;
mod interop;
mod restart;
mod spin;
mod streams;
mod uploads;
mod wire;
