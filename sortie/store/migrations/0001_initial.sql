-- Times are Unix seconds. Issues are JSON. A text that is not valid Unicode is kept as a blob.

CREATE TABLE runs (
  seq INTEGER PRIMARY KEY,
  run_id TEXT NOT NULL UNIQUE,
  issue_id TEXT NOT NULL,
  identifier TEXT NOT NULL,
  issue TEXT,  -- while the run is under way; history does not need it
  failures INTEGER NOT NULL,
  continuations INTEGER NOT NULL,
  interruptions INTEGER NOT NULL,
  host TEXT NOT NULL,
  agent TEXT NOT NULL,
  workspace TEXT,
  pid INTEGER,
  process_started_at REAL,
  turns INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL DEFAULT 'running',
  error_kind TEXT,
  error TEXT,
  credits REAL,
  tokens INTEGER,
  started_at REAL NOT NULL,
  seen_at REAL NOT NULL,  -- the last sign of life before the end
  finished_at REAL,
  seconds REAL NOT NULL DEFAULT 0
);

CREATE INDEX runs_by_start ON runs (started_at, seq);
CREATE INDEX runs_by_identifier ON runs (identifier, started_at, seq);
-- Never two runs of one issue; and what recovery looks for.
CREATE UNIQUE INDEX runs_under_way ON runs (issue_id) WHERE finished_at IS NULL;

CREATE TABLE retries (
  issue_id TEXT PRIMARY KEY NOT NULL,
  issue TEXT NOT NULL,
  kind TEXT NOT NULL,
  triggered_by TEXT NOT NULL,
  failures INTEGER NOT NULL,
  continuations INTEGER NOT NULL,
  interruptions INTEGER NOT NULL,
  delay REAL NOT NULL,
  due_at REAL NOT NULL,
  tries INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE holds (
  issue_id TEXT PRIMARY KEY NOT NULL,
  issue TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  since REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE sessions (
  issue_id TEXT PRIMARY KEY NOT NULL,
  sessions INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE workspaces (
  issue_id TEXT NOT NULL,
  host TEXT NOT NULL,
  identifier TEXT NOT NULL,
  path TEXT NOT NULL,
  PRIMARY KEY (issue_id, host)
) WITHOUT ROWID;

CREATE TABLE sightings (
  issue_id TEXT PRIMARY KEY NOT NULL,
  digest TEXT NOT NULL,
  first_seen REAL NOT NULL,
  changed_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE daemon (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  paused INTEGER NOT NULL DEFAULT 0,
  checks INTEGER NOT NULL DEFAULT 0
);
INSERT INTO daemon (id) VALUES (1);

-- Kept by triggers, so that reading it costs the same with ten runs and with a million.
CREATE TABLE totals (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  runs INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  credits REAL,
  tokens INTEGER,
  seconds REAL NOT NULL DEFAULT 0
);
INSERT INTO totals (id) VALUES (1);

CREATE TRIGGER run_began AFTER INSERT ON runs BEGIN
  UPDATE totals SET runs = runs + 1;
END;

CREATE TRIGGER run_counted
AFTER UPDATE OF turns, credits, tokens, seconds ON runs BEGIN
  UPDATE totals SET
    turns = turns + NEW.turns - OLD.turns,
    credits = CASE WHEN NEW.credits IS NULL THEN credits
      ELSE coalesce(credits, 0) + NEW.credits - coalesce(OLD.credits, 0) END,
    tokens = CASE WHEN NEW.tokens IS NULL THEN tokens
      ELSE coalesce(tokens, 0) + NEW.tokens - coalesce(OLD.tokens, 0) END,
    seconds = seconds + NEW.seconds - OLD.seconds;
END;
