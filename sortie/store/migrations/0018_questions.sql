-- The newest question of an issue to people, and what has become of it. Its default counts at due_at,
-- which was delay seconds after it was asked; NULL: it never does by itself. Times are Unix seconds.

CREATE TABLE questions (
  issue_id TEXT PRIMARY KEY,
  asked TEXT NOT NULL,     -- JSON
  asked_at REAL NOT NULL,
  delay REAL,
  due_at REAL
) STRICT;
