//! What a component may touch and how much it may use, as data.
//!
//! A [`manifest`] says what a component asks for, a [`grant`] what its operator lets it have, and a [`policy`] is what
//! both agree on: what is in force. All three name [`http`] requests (to hosts of a [`pattern`]), [`dirs`], values of
//! an [`env`]ironment, [`secrets`] and [`limits`]. [`authority`] is the one reading of whom a request goes to, and
//! [`address`] judges what that leads to at the moment it is dialled.

pub mod address;
pub mod authority;
pub mod dirs;
pub mod document;
pub mod env;
pub mod grant;
pub mod http;
pub mod limits;
pub mod manifest;
pub mod method;
pub mod nearest;
pub mod network;
pub mod pattern;
pub mod policy;
pub mod port;
pub mod secrets;
pub mod show;
mod suffix;
