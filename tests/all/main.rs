//! The house as a whole: real processes, real components, clients that are not ours.

mod artifacts;
mod canary;
mod carriers;
mod command;
mod desktop;
mod edges;
mod gone;
mod grants;
mod guests;
mod house;
mod interop;
mod library;
mod limits;
mod outgoing;
mod restart;
mod rounds;
mod sessions;
mod shapes;
mod spin;
mod starting;
mod stdio;
mod streams;
mod survive;
mod uploads;
mod values;
mod wire;
