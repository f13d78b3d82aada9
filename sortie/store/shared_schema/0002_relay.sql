-- Requests that were put to a daemon which does not lead the workflow, and the answers of its leader.
-- After a crash of the server the table is empty: a request lives for seconds.
CREATE UNLOGGED TABLE relayed_requests (
  id text PRIMARY KEY,
  workflow text NOT NULL,
  daemon text NOT NULL, -- the id of the one that was asked
  leader text NOT NULL, -- HOST:PID of the one that led the workflow then
  method text NOT NULL,
  target text NOT NULL, -- path and query
  caller text NOT NULL, -- as the daemon that was asked has found: anybody, session or token
  accept text NOT NULL, -- the header
  expires timestamptz NOT NULL, -- until when it may be taken
  token bigint, -- of the lease for which it was taken; NULL: it was not taken yet
  status integer, -- of the answer; NULL: there is none yet
  headers text, -- a JSON object
  body bytea
);
CREATE INDEX relayed_requests_waiting ON relayed_requests (workflow) WHERE token IS NULL;
