-- A database as the first version of the schema was written, killed in the middle of a run.
BEGIN TRANSACTION;
CREATE TABLE daemon (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  paused INTEGER NOT NULL DEFAULT 0,
  checks INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "daemon" VALUES(1,1,1);
CREATE TABLE holds (
  issue_id TEXT PRIMARY KEY NOT NULL,
  issue TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  since REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "holds" VALUES('id-A-1','{"id": "id-A-1", "identifier": "A-1", "title": "Title of A-1", "state": "Todo", "description": "", "priority": null, "url": null, "labels": [], "assignee": null, "issue_type": null, "branch_name": null, "parent": null, "comments": [], "blocked_by": [], "created_at": null, "updated_at": null}','agent_blocked',X'EDA080',1700000182.25);
INSERT INTO "holds" VALUES('id-C-3','{"id": "id-C-3", "identifier": "C-3", "title": "Title of C-3", "state": "Todo", "description": "", "priority": null, "url": null, "labels": [], "assignee": null, "issue_type": null, "branch_name": null, "parent": null, "comments": [], "blocked_by": [], "created_at": null, "updated_at": null}','operator','someone asked',1700000181.25);
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
INSERT INTO "retries" VALUES('id-B-2','{"id": "id-B-2", "identifier": "B-2", "title": "Title of B-2", "state": "Todo", "description": "", "priority": null, "url": null, "labels": [], "assignee": null, "issue_type": null, "branch_name": null, "parent": null, "comments": [], "blocked_by": [], "created_at": null, "updated_at": null}','continuation','continuation',0,2,0,1.0,1700000181.25,0);
INSERT INTO "retries" VALUES('id-W-1','{"id": "id-W-1", "identifier": "W-1", "title": "Title of W-1", "state": "Todo", "description": "", "priority": 1, "url": null, "labels": [], "assignee": null, "issue_type": null, "branch_name": null, "parent": null, "comments": [], "blocked_by": [], "created_at": null, "updated_at": null}','retry','error',3,0,0,40.5,1700000220.75,0);
INSERT INTO "retries" VALUES(X'69642D4F2DEDA080','{"id": "id-O-\ud800", "identifier": "O-\ud800", "title": "\u00fcn\u00ef \ud83e\uddf5 \ud800 ''; DROP TABLE runs; --\nline", "state": "Todo", "description": "", "priority": null, "url": null, "labels": [], "assignee": null, "issue_type": null, "branch_name": null, "parent": null, "comments": [], "blocked_by": [], "created_at": null, "updated_at": null}','handoff','handoff',0,0,0,20.0,1700000200.25,3);
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
INSERT INTO "runs" VALUES(1,'r1','id-A-1','A-1',NULL,0,0,0,'local','kiro','/w/A-1',NULL,NULL,2,'succeeded',NULL,NULL,3.00000000000000044408e-01,NULL,1700000000.25,1700000003.25,1700000010.25,10.0);
INSERT INTO "runs" VALUES(2,'r2','id-A-1','A-1',NULL,1,0,0,'me@box:22','kiro','/srv/A-1',NULL,NULL,1,'failed','port_exit',X'6578697420333A20EDA080',NULL,1234,1700000020.25,1700000022.25,1700000030.25,10.0);
INSERT INTO "runs" VALUES(3,'r3','id-B-2','B-2',NULL,0,0,0,'local','kiro','/w/B-2',NULL,NULL,1,'timed_out','turn_timeout','too long',1.5,NULL,1700000040.25,1700000042.25,1700000050.25,10.0);
INSERT INTO "runs" VALUES(4,'r4','id-B-2','B-2',NULL,2,0,0,'local','kiro','/w/B-2',NULL,NULL,1,'stalled','turn_stalled',NULL,NULL,NULL,1700000060.25,1700000062.25,1700000070.25,10.0);
INSERT INTO "runs" VALUES(5,'r5','id-C-3','C-3',NULL,0,0,0,'local','kiro',NULL,NULL,NULL,0,'cancelled','turn_cancelled',NULL,NULL,NULL,1700000080.25,1700000080.25,1700000090.25,10.0);
INSERT INTO "runs" VALUES(6,'r6','id-C-3','C-3',NULL,0,0,0,'local','kiro','/w/C-3',NULL,NULL,1,'interrupted',NULL,NULL,NULL,NULL,1700000100.25,1700000102.25,1700000110.25,10.0);
INSERT INTO "runs" VALUES(7,'r7',X'69642D4F2DEDA080',X'4F2DEDA080',NULL,0,0,0,'local','kiro',X'2F772F4F2DEDB3BF',NULL,NULL,1,'succeeded',NULL,NULL,NULL,NULL,1700000120.25,1700000122.25,1700000130.25,10.0);
INSERT INTO "runs" VALUES(8,'r8','0-A-1','A-1',NULL,0,0,0,'local','kiro','/w/A-1',NULL,NULL,1,'succeeded',NULL,NULL,NULL,NULL,1700000140.25,1700000142.25,1700000150.25,10.0);
INSERT INTO "runs" VALUES(9,'r9','id-R-1','R-1','{"id": "id-R-1", "identifier": "R-1", "title": "Title of R-1", "state": "Todo", "description": "{{ 7*7 }} ../x \u0000\u001b[31m", "priority": 2, "url": "https://tracker.example/R-1", "labels": ["one", "Two"], "assignee": "someone", "issue_type": null, "branch_name": null, "parent": null, "comments": [{"author": "a", "body": "b", "created_at": null}, {"author": "c", "body": "", "created_at": "2024-02-29T01:02:03.000004Z"}], "blocked_by": [{"identifier": "A-1", "id": null, "state": null}, {"identifier": "B-2", "id": "id-B-2", "state": "Done"}], "created_at": "2024-01-01T00:00:00+05:30", "updated_at": "2024-01-01T00:00:00"}',2,1,1,'me@box:22','kiro','/srv/R-1',4711,1.69999999912345600133e+09,3,'running',NULL,NULL,NULL,NULL,1700000160.25,1700000170.25,NULL,0.0);
CREATE TABLE sessions (
  issue_id TEXT PRIMARY KEY NOT NULL,
  sessions INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO "sessions" VALUES('0-A-1',8);
INSERT INTO "sessions" VALUES('id-A-1',2);
INSERT INTO "sessions" VALUES('id-B-2',4);
INSERT INTO "sessions" VALUES('id-C-3',6);
INSERT INTO "sessions" VALUES('id-R-1',9);
INSERT INTO "sessions" VALUES(X'69642D4F2DEDA080',7);
CREATE TABLE sightings (
  issue_id TEXT PRIMARY KEY NOT NULL,
  digest TEXT NOT NULL,
  first_seen REAL NOT NULL,
  changed_at REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO "sightings" VALUES('id-A-1','two',1700000000.25,1700000050.25);
INSERT INTO "sightings" VALUES(X'69642D4F2DEDA080','one',1700000000.25,1700000000.25);
CREATE TABLE totals (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  runs INTEGER NOT NULL DEFAULT 0,
  turns INTEGER NOT NULL DEFAULT 0,
  credits REAL,
  tokens INTEGER,
  seconds REAL NOT NULL DEFAULT 0
);
INSERT INTO "totals" VALUES(1,9,11,1.8,1234,80.0);
CREATE TABLE workspaces (
  issue_id TEXT NOT NULL,
  host TEXT NOT NULL,
  identifier TEXT NOT NULL,
  path TEXT NOT NULL,
  PRIMARY KEY (issue_id, host)
) WITHOUT ROWID;
INSERT INTO "workspaces" VALUES('0-A-1','local','A-1','/w/A-1');
INSERT INTO "workspaces" VALUES('id-A-1','local','A-1','/w/A-1');
INSERT INTO "workspaces" VALUES('id-A-1','me@box:22','A-1','/srv/A-1');
INSERT INTO "workspaces" VALUES('id-B-2','local','B-2','/w/B-2');
INSERT INTO "workspaces" VALUES('id-C-3','local','C-3','/w/C-3');
INSERT INTO "workspaces" VALUES('id-R-1','me@box:22','R-1','/srv/R-1');
INSERT INTO "workspaces" VALUES(X'69642D4F2DEDA080','local',X'4F2DEDA080',X'2F772F4F2DEDB3BF');
CREATE INDEX runs_by_start ON runs (started_at, seq);
CREATE INDEX runs_by_identifier ON runs (identifier, started_at, seq);
CREATE UNIQUE INDEX runs_under_way ON runs (issue_id) WHERE finished_at IS NULL;
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
COMMIT;
PRAGMA application_id = 1399812724;
PRAGMA user_version = 1;
