-- What the daemons of a database know of each other: which there are, and which leads what.
CREATE SEQUENCE lease_tokens;

CREATE TABLE daemons (
  id text PRIMARY KEY, -- random, for one life of a process
  name text NOT NULL, -- HOST:PID
  version text NOT NULL,
  weight double precision NOT NULL,
  draining boolean NOT NULL DEFAULT false,
  since timestamptz NOT NULL DEFAULT now(),
  expires timestamptz NOT NULL
);

CREATE TABLE candidates (
  workflow text NOT NULL, -- the name of its schema
  daemon text NOT NULL REFERENCES daemons ON DELETE CASCADE,
  PRIMARY KEY (workflow, daemon)
);

-- One row for each workflow, for ever. An acquisition changes the token, which is a key, so that it
-- waits for transactions that have locked the row FOR KEY SHARE; a renewal does not.
CREATE TABLE leases (
  workflow text PRIMARY KEY,
  token bigint NOT NULL UNIQUE,
  daemon text, -- NULL: nothing leads the workflow
  name text,
  since timestamptz,
  expires timestamptz NOT NULL
);

-- One row for each token that a daemon was given.
CREATE TABLE leaderships (
  token bigint PRIMARY KEY,
  workflow text NOT NULL,
  daemon text NOT NULL,
  name text NOT NULL,
  since timestamptz NOT NULL,
  until timestamptz, -- NULL: while it leads; when it ended, or when its lease was over
  ended_by text CHECK (ended_by IN ('released', 'moved', 'drained', 'unfit', 'expired'))
);
CREATE INDEX leaderships_of_workflow ON leaderships (workflow, token);
