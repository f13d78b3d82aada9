-- What became of the work of runs: branch, evidence, pull request; and the difference to the base.

ALTER TABLE runs ADD COLUMN delivery TEXT;             -- JSON; NULL where there is none
ALTER TABLE runs ADD COLUMN delivery_pending INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_pending ON runs (issue_id) WHERE delivery_pending;

CREATE TABLE diffs (
  run_id TEXT PRIMARY KEY,
  diff TEXT NOT NULL       -- zlib in base 85
) STRICT;

CREATE TRIGGER forget_diff AFTER DELETE ON runs
BEGIN
  DELETE FROM diffs WHERE run_id = old.run_id;
END;
