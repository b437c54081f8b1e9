//! Notices to the clients that listen: that a list or the contents of a resource should be read again.

pub use crate::bindings::longshore::tool::changes::{
    prompts_changed, resource_updated, resources_changed, tools_changed,
};
