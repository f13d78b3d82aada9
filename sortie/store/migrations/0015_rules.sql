-- The rule that decides for an issue, and for a run; '' is the top level of the settings.

CREATE TABLE issue_rules (
  issue_id TEXT PRIMARY KEY,
  rule TEXT NOT NULL
) STRICT;

-- What is known of the stages that an issue has passed.

CREATE TABLE stages (
  issue_id TEXT PRIMARY KEY,
  passed TEXT NOT NULL     -- JSON
) STRICT;

ALTER TABLE workspaces ADD COLUMN rule TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN rule TEXT NOT NULL DEFAULT '';
