-- What the leaders of workflows have and want of the slots that all of them share: one row for each
-- workflow, of its last leader. It counts until a later leader has written its own.
CREATE TABLE slot_reports (
  workflow text PRIMARY KEY, -- the name of its schema
  token bigint NOT NULL, -- of the leader that has written it
  number bigint NOT NULL, -- grows with each report of that leader
  report text NOT NULL -- JSON
);

-- What they may have, by the daemon that has the lease @slots.
CREATE TABLE slot_grants (
  workflow text PRIMARY KEY,
  token bigint NOT NULL, -- of the leader that the grants are for
  divider bigint NOT NULL, -- the token of the daemon that divides
  grants text NOT NULL -- JSON: those by which the leader may act still, the last one at the end
);

-- The usage limits of accounts that the workflows have met.
CREATE TABLE usage_limits (
  account text PRIMARY KEY,
  generation bigint NOT NULL, -- grows when the limit is met anew, or over
  message text NOT NULL,
  until timestamptz NOT NULL, -- when it may be over
  resets_at timestamptz, -- NULL: nothing was said of its end
  over boolean NOT NULL,
  met_by bigint NOT NULL, -- the token of a leader
  claimed_by bigint, -- the token of the leader whose workflow tries whether it is over
  claimed_until timestamptz
);
