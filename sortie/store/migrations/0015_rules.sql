-- The rule that decides for an issue, and for a run; '' is the top level of the settings.

CREATE TABLE issue_rules (
  issue_id TEXT PRIMARY KEY,
  rule TEXT NOT NULL
) STRICT;

ALTER TABLE runs ADD COLUMN rule TEXT NOT NULL DEFAULT '';
