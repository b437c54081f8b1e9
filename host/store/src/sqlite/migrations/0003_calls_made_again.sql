-- How whoever called comes to the result: by the id of the task, or only by making the call again.
alter table task add column reach text not null default 'id';

-- A key is for making a call once, also when two requests with it come at the same moment.
drop index task_idempotency;
create unique index task_idempotency on task (tenant, principal, idempotency_key)
    where idempotency_key is not null;
