-- Notifications by target: those that wait, those that were sent, and those that are given up.

CREATE TABLE notifications (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  target TEXT NOT NULL,
  event TEXT NOT NULL,
  issue_id TEXT,
  notification TEXT NOT NULL,  -- JSON
  created_at REAL NOT NULL,    -- times are Unix seconds
  state TEXT NOT NULL DEFAULT 'waiting',  -- or sent, dead
  tries INTEGER NOT NULL DEFAULT 0,
  unsure INTEGER NOT NULL DEFAULT 0,      -- 1 where a try may have arrived
  error TEXT,
  ended_at REAL,
  UNIQUE (key, target)
) STRICT;

CREATE INDEX notifications_open ON notifications (target, state, id) WHERE state <> 'sent';
CREATE INDEX notifications_by_issue ON notifications (issue_id);
