-- Pull requests that are watched until they are merged or closed.

CREATE TABLE watches (
  issue_id TEXT PRIMARY KEY,
  issue TEXT NOT NULL,     -- JSON
  watch TEXT NOT NULL      -- JSON
) STRICT;
