//! From our files' words to those of the interface.
#![expect(
    unreachable_pub,
    reason = "the generated bindings name these types as public ones"
)]

use longshore_journal::files::{self, Kind, NodeId, Refused, Stat, Time};
use wasmtime::Error;
use wasmtime::component::ResourceTableError;

use crate::bindings::wasi_world::wasi::clocks::wall_clock::Datetime;
use crate::bindings::wasi_world::wasi::filesystem::types::{
    DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, NewTimestamp,
};

/// An error of a file, or the end of the guest.
pub enum FileError {
    Code(ErrorCode),
    Trap(Error),
}

impl From<ErrorCode> for FileError {
    fn from(code: ErrorCode) -> Self {
        Self::Code(code)
    }
}

impl From<Refused> for FileError {
    fn from(refused: Refused) -> Self {
        Self::Code(code_of(refused))
    }
}

impl From<Error> for FileError {
    fn from(error: Error) -> Self {
        Self::Trap(error)
    }
}

impl From<ResourceTableError> for FileError {
    fn from(error: ResourceTableError) -> Self {
        Self::Trap(error.into())
    }
}

pub(super) type FileResult<T> = std::result::Result<T, FileError>;

pub(super) fn code_of(refused: Refused) -> ErrorCode {
    match refused {
        Refused::NoEntry => ErrorCode::NoEntry,
        Refused::Exists => ErrorCode::Exist,
        Refused::NotDirectory => ErrorCode::NotDirectory,
        Refused::IsDirectory => ErrorCode::IsDirectory,
        Refused::NotEmpty => ErrorCode::NotEmpty,
        Refused::Invalid => ErrorCode::Invalid,
        Refused::NameTooLong => ErrorCode::NameTooLong,
        Refused::Outside => ErrorCode::NotPermitted,
        Refused::NoSpace => ErrorCode::InsufficientSpace,
        Refused::Still => ErrorCode::ReadOnly,
    }
}

pub(super) fn type_of(kind: Kind) -> DescriptorType {
    match kind {
        Kind::File => DescriptorType::RegularFile,
        Kind::Directory => DescriptorType::Directory,
    }
}

pub(super) fn datetime(time: Time) -> Datetime {
    Datetime {
        seconds: time.seconds,
        nanoseconds: time.nanoseconds,
    }
}

pub(super) fn stat_of(stat: Stat) -> DescriptorStat {
    DescriptorStat {
        type_: type_of(stat.kind),
        link_count: stat.links,
        size: stat.size,
        data_access_timestamp: Some(datetime(stat.times.accessed)),
        data_modification_timestamp: Some(datetime(stat.times.modified)),
        status_change_timestamp: Some(datetime(stat.times.changed)),
    }
}

pub(super) fn change_of(given: NewTimestamp) -> files::Change {
    match given {
        NewTimestamp::NoChange => files::Change::Keep,
        NewTimestamp::Now => files::Change::Now,
        NewTimestamp::Timestamp(Datetime {
            seconds,
            nanoseconds,
        }) => files::Change::To(Time {
            seconds,
            nanoseconds,
        }),
    }
}

/// Guests take it for the number of the file, which says whether two are the same.
pub(super) fn hash_of(node: NodeId) -> MetadataHashValue {
    MetadataHashValue {
        lower: node.number(),
        upper: 0,
    }
}
