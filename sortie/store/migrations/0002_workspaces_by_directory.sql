-- A directory belongs to the issue that had it last, and an issue may have several on one host.
-- Of two issues with one directory, that of the newest run there keeps it.

ALTER TABLE workspaces RENAME TO workspaces_by_issue;

CREATE TABLE workspaces (
  host TEXT NOT NULL,
  path TEXT NOT NULL,
  issue_id TEXT NOT NULL,
  identifier TEXT NOT NULL,
  PRIMARY KEY (host, path)
) WITHOUT ROWID;

-- Rows are written in this order, so the last of a directory stays.
INSERT OR REPLACE INTO workspaces (host, path, issue_id, identifier)
SELECT known.host, known.path, known.issue_id, known.identifier
FROM workspaces_by_issue AS known
LEFT JOIN (
  SELECT host, workspace, issue_id, max(seq) AS seq FROM runs
  WHERE workspace IS NOT NULL GROUP BY host, workspace, issue_id
) AS used
ON used.host = known.host AND used.workspace = known.path AND used.issue_id = known.issue_id
ORDER BY coalesce(used.seq, 0), known.issue_id;

DROP TABLE workspaces_by_issue;

CREATE TABLE crashes (
  issue_id TEXT PRIMARY KEY NOT NULL,
  issue TEXT NOT NULL,
  times INTEGER NOT NULL
) WITHOUT ROWID;
