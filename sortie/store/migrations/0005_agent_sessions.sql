-- The agent's own id of a run's session, by which the next run of its issue can go on with it.

ALTER TABLE runs ADD COLUMN session_id TEXT;

CREATE INDEX runs_with_session ON runs (issue_id, seq) WHERE session_id IS NOT NULL;
