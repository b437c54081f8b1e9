create table migration (
    version integer primary key
) strict;

-- Small columns first: a scan then never reads the texts, which may reach into overflow pages.
create table task (
    -- The order in which tasks were made. A random primary key would cost ten times the CPU at a
    -- million rows; the random part is only in the index below.
    key integer primary key,
    id blob not null,
    version integer not null,
    epoch integer not null,
    owner text,
    state text not null,
    created_at integer not null,
    updated_at integer not null,
    deadline_at integer not null,
    retention_ms integer not null,
    ended_at integer,
    -- When the row may be deleted; null while the task lives.
    forget_at integer,
    cancel_requested_at integer,
    wake_at integer,
    stalls integer not null,
    segments integer not null,
    calls integer not null,
    base integer not null,
    active_ms integer not null,
    cpu_ms integer not null,
    progress_done real,
    progress_total real,
    tenant text not null,
    principal text not null,
    component text not null,
    digest text not null,
    tool text not null,
    revision text not null,
    host_abi integer not null,
    idempotency_key text,
    status_message text,
    failure_code integer,
    failure_message text,
    failure_data text,
    client text not null,
    policy text not null,
    arguments text not null,
    result text
) strict;
create unique index task_id on task (id);
create index task_unfinished on task (key) where ended_at is null;
create index task_forget on task (forget_at) where forget_at is not null;
create index task_idempotency on task (tenant, principal, idempotency_key)
    where idempotency_key is not null;

create table segment (
    task integer not null references task (key) on delete cascade,
    number integer not null,
    epoch integer not null,
    first_call integer not null,
    last_call integer not null,
    frames blob not null,
    primary key (task, number)
) strict;

create table question (
    task integer not null references task (key) on delete cascade,
    ordinal integer not null,
    key text not null,
    state text not null,
    request text not null,
    answer text,
    primary key (task, ordinal),
    unique (task, key)
) strict;

create table component (
    digest text primary key,
    size integer not null,
    -- Tools, imports and what makes it volatile, as JSON.
    meta text not null,
    bytes blob not null
) strict;

create table component_name (
    name text primary key,
    digest text not null references component (digest),
    installed_at integer not null
) strict;
create index component_name_digest on component_name (digest);
