//! The rules of policies, as tables and as what holds for all of them.

mod address;
mod algebra;
mod authority;
mod documents;
mod http;
mod limits;
