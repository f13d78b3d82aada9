-- As for a file; texts that identify are compared byte by byte.

CREATE TABLE notifications (
  id BIGINT PRIMARY KEY,
  key TEXT COLLATE "C" NOT NULL,
  target TEXT COLLATE "C" NOT NULL,
  event TEXT COLLATE "C" NOT NULL,
  issue_id TEXT COLLATE "C",
  notification TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting',
  tries BIGINT NOT NULL DEFAULT 0,
  unsure BIGINT NOT NULL DEFAULT 0,
  error TEXT,
  ended_at DOUBLE PRECISION,
  UNIQUE (key, target)
);

CREATE INDEX notifications_open ON notifications (target, state, id) WHERE state <> 'sent';
CREATE INDEX notifications_by_issue ON notifications (issue_id);
