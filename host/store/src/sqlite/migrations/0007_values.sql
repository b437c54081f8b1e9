-- What components keep beyond their calls.
create table value (
    key integer primary key,
    tenant text not null,
    component text not null,
    name text not null,
    value blob not null
) strict;
create unique index value_name on value (tenant, component, name);

-- How much that is for each, so that nobody has to add it up.
create table value_taken (
    tenant text not null,
    component text not null,
    keys integer not null,
    bytes integer not null,
    primary key (tenant, component)
) strict, without rowid;

-- What came of the newest change that a call has made: it asks again for no other. A call need not have a row.
create table value_change (
    call blob not null,
    start integer not null,
    number integer not null,
    outcome text not null,
    primary key (call, start)
) strict, without rowid;
