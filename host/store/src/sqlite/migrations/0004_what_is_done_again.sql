-- What the guest had used when the newest segment was written: whoever goes on uses again what came after it.
alter table task add column kept_active_ms integer not null default 0;
alter table task add column kept_cpu_ms integer not null default 0;
update task set kept_active_ms = active_ms, kept_cpu_ms = cpu_ms where ended_at is null and segments > 0;
