-- What the secret of the data directory can be told by, which tells nothing of it.
create table secret (
    one integer primary key check (one = 1),
    sign blob not null
) strict;
