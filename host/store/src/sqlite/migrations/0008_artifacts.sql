-- What runs leave for whoever called them. Those of a task go with its row; `forget_at` is for those of other calls, and
-- null until these have ended. No foreign key: a call may become a task after it has left something.
create table artifact (
    key integer primary key,
    id blob not null unique,
    call blob not null,
    tenant text not null,
    principal text not null,
    name text not null,
    mime_type text not null,
    bytes integer not null,
    forget_at integer,
    data blob not null
) strict;
create index artifact_call on artifact (call, bytes);
create index artifact_forget on artifact (forget_at) where forget_at is not null;
