-- CPU time of the guest when the newest restart point was made.
alter table task add column base_cpu_ms integer not null default 0;
-- Sealed. Without it the journal cannot be read, so that deleting the row erases both.
alter table task add column journal_key blob;

-- 0 for a segment from before this was kept.
alter table segment add column written_at integer not null default 0;

create table output (
    task integer primary key references task (key) on delete cascade,
    calls integer not null,
    body blob not null
) strict;

-- All that decides what is to be done with a task that has not ended, so that looking through very many
-- of them reads none of their texts. `ended_at` is always null here: without it the index would not be
-- taken for complete.
drop index task_unfinished;
create index task_unfinished on task
    (key, ended_at, id, state, owner, wake_at, deadline_at, cancel_requested_at, stalls)
    where ended_at is null;
