-- What the operator grants to a component of that name, whether or not one is there now.
create table component_grant (
    name text primary key,
    grant_json text not null
) strict;
