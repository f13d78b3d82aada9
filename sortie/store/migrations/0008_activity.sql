-- What a run's agent is known to have done; NULL is unknown, and an empty list or object is nothing.

ALTER TABLE runs ADD COLUMN model TEXT;
ALTER TABLE runs ADD COLUMN files_modified TEXT;  -- a JSON array of paths
ALTER TABLE runs ADD COLUMN files_omitted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN tool_uses TEXT;  -- a JSON object: names of tools, how often
