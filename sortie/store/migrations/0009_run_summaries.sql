-- What history tells of a run's issue and of what the run has left; NULL is unknown.

ALTER TABLE runs ADD COLUMN title TEXT;
ALTER TABLE runs ADD COLUMN state TEXT;  -- of the issue, as it was last known
ALTER TABLE runs ADD COLUMN answer TEXT;  -- what the agent said last
ALTER TABLE runs ADD COLUMN branch TEXT;
ALTER TABLE runs ADD COLUMN head_commit TEXT;
ALTER TABLE runs ADD COLUMN commits INTEGER;
ALTER TABLE runs ADD COLUMN files_changed INTEGER;
ALTER TABLE runs ADD COLUMN uncommitted INTEGER;
ALTER TABLE runs ADD COLUMN handed_off_at REAL;  -- when the issue was moved after this run
