-- What runs have used, and the sums by issue and by day, which triggers keep: so they cannot
-- disagree with the runs, and stay when old runs are forgotten. NULL is unknown, never 0.

ALTER TABLE runs ADD COLUMN input_tokens INTEGER;
ALTER TABLE runs ADD COLUMN output_tokens INTEGER;
ALTER TABLE runs ADD COLUMN cached_tokens INTEGER;
ALTER TABLE runs ADD COLUMN cache_write_tokens INTEGER;
ALTER TABLE runs ADD COLUMN cost_usd REAL;
ALTER TABLE runs ADD COLUMN estimated_usd REAL;  -- how much of the cost is an estimate
ALTER TABLE runs ADD COLUMN unpriced_tokens INTEGER;

ALTER TABLE totals ADD COLUMN cost_usd REAL;
ALTER TABLE totals ADD COLUMN estimated_usd REAL;

-- The day that what is used now counts for, in the zone of the settings, as 2026-11-22.
ALTER TABLE daemon ADD COLUMN day TEXT;

-- Since the issue's budget began anew.
CREATE TABLE spent_by_issue (
  issue_id TEXT PRIMARY KEY NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  cache_write_tokens INTEGER,
  credits REAL,
  cost_usd REAL,
  estimated_usd REAL,
  unpriced_tokens INTEGER
) WITHOUT ROWID;

CREATE TABLE spent_by_day (
  day TEXT NOT NULL,
  agent TEXT NOT NULL,
  runs INTEGER NOT NULL DEFAULT 0,  -- that ended on this day, with their turns and seconds
  turns INTEGER NOT NULL DEFAULT 0,
  seconds REAL NOT NULL DEFAULT 0,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  cache_write_tokens INTEGER,
  credits REAL,
  cost_usd REAL,
  estimated_usd REAL,
  unpriced_tokens INTEGER,
  PRIMARY KEY (day, agent)
) WITHOUT ROWID;

-- Until now nobody kept days: those of UTC come closest.
INSERT INTO spent_by_day (day, agent, runs, turns, seconds, credits)
SELECT date(finished_at, 'unixepoch'), agent, count(*), sum(turns), sum(seconds), sum(credits)
FROM runs WHERE finished_at IS NOT NULL GROUP BY 1, 2;

INSERT INTO spent_by_issue (issue_id, credits)
SELECT issue_id, sum(credits) FROM runs
WHERE credits IS NOT NULL AND issue_id IN (SELECT issue_id FROM sessions) GROUP BY 1;

CREATE TABLE usage_limits (
  account TEXT PRIMARY KEY NOT NULL,
  message TEXT NOT NULL,
  since REAL NOT NULL,
  until REAL NOT NULL,
  delay REAL NOT NULL,
  resets_at REAL,  -- NULL where nobody said
  times INTEGER NOT NULL
) WITHOUT ROWID;

DROP TRIGGER run_counted;

CREATE TRIGGER run_counted
AFTER UPDATE OF turns, credits, tokens, seconds, cost_usd, estimated_usd ON runs BEGIN
  UPDATE totals SET
    turns = turns + NEW.turns - OLD.turns,
    credits = CASE WHEN NEW.credits IS NULL THEN credits
      ELSE coalesce(credits, 0) + NEW.credits - coalesce(OLD.credits, 0) END,
    tokens = CASE WHEN NEW.tokens IS NULL THEN tokens
      ELSE coalesce(tokens, 0) + NEW.tokens - coalesce(OLD.tokens, 0) END,
    cost_usd = CASE WHEN NEW.cost_usd IS NULL THEN cost_usd
      ELSE coalesce(cost_usd, 0) + NEW.cost_usd - coalesce(OLD.cost_usd, 0) END,
    estimated_usd = CASE WHEN NEW.estimated_usd IS NULL THEN estimated_usd
      ELSE coalesce(estimated_usd, 0) + NEW.estimated_usd - coalesce(OLD.estimated_usd, 0) END,
    seconds = seconds + NEW.seconds - OLD.seconds;
END;

CREATE TRIGGER run_spent_of_issue
AFTER UPDATE OF
  input_tokens, output_tokens, cached_tokens, cache_write_tokens,
  credits, cost_usd, estimated_usd, unpriced_tokens
ON runs BEGIN
  INSERT INTO spent_by_issue (
    issue_id, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
    credits, cost_usd, estimated_usd, unpriced_tokens
  ) VALUES (
    NEW.issue_id,
    NEW.input_tokens - coalesce(OLD.input_tokens, 0),
    NEW.output_tokens - coalesce(OLD.output_tokens, 0),
    NEW.cached_tokens - coalesce(OLD.cached_tokens, 0),
    NEW.cache_write_tokens - coalesce(OLD.cache_write_tokens, 0),
    NEW.credits - coalesce(OLD.credits, 0),
    NEW.cost_usd - coalesce(OLD.cost_usd, 0),
    NEW.estimated_usd - coalesce(OLD.estimated_usd, 0),
    NEW.unpriced_tokens - coalesce(OLD.unpriced_tokens, 0)
  ) ON CONFLICT (issue_id) DO UPDATE SET
    input_tokens = CASE WHEN excluded.input_tokens IS NULL THEN input_tokens
      ELSE coalesce(input_tokens, 0) + excluded.input_tokens END,
    output_tokens = CASE WHEN excluded.output_tokens IS NULL THEN output_tokens
      ELSE coalesce(output_tokens, 0) + excluded.output_tokens END,
    cached_tokens = CASE WHEN excluded.cached_tokens IS NULL THEN cached_tokens
      ELSE coalesce(cached_tokens, 0) + excluded.cached_tokens END,
    cache_write_tokens = CASE WHEN excluded.cache_write_tokens IS NULL THEN cache_write_tokens
      ELSE coalesce(cache_write_tokens, 0) + excluded.cache_write_tokens END,
    credits = CASE WHEN excluded.credits IS NULL THEN credits
      ELSE coalesce(credits, 0) + excluded.credits END,
    cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN cost_usd
      ELSE coalesce(cost_usd, 0) + excluded.cost_usd END,
    estimated_usd = CASE WHEN excluded.estimated_usd IS NULL THEN estimated_usd
      ELSE coalesce(estimated_usd, 0) + excluded.estimated_usd END,
    unpriced_tokens = CASE WHEN excluded.unpriced_tokens IS NULL THEN unpriced_tokens
      ELSE coalesce(unpriced_tokens, 0) + excluded.unpriced_tokens END;
END;

CREATE TRIGGER run_spent_on_day
AFTER UPDATE OF
  input_tokens, output_tokens, cached_tokens, cache_write_tokens,
  credits, cost_usd, estimated_usd, unpriced_tokens
ON runs BEGIN
  INSERT INTO spent_by_day (
    day, agent, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
    credits, cost_usd, estimated_usd, unpriced_tokens
  ) VALUES (
    (SELECT coalesce(day, date(NEW.seen_at, 'unixepoch')) FROM daemon), NEW.agent,
    NEW.input_tokens - coalesce(OLD.input_tokens, 0),
    NEW.output_tokens - coalesce(OLD.output_tokens, 0),
    NEW.cached_tokens - coalesce(OLD.cached_tokens, 0),
    NEW.cache_write_tokens - coalesce(OLD.cache_write_tokens, 0),
    NEW.credits - coalesce(OLD.credits, 0),
    NEW.cost_usd - coalesce(OLD.cost_usd, 0),
    NEW.estimated_usd - coalesce(OLD.estimated_usd, 0),
    NEW.unpriced_tokens - coalesce(OLD.unpriced_tokens, 0)
  ) ON CONFLICT (day, agent) DO UPDATE SET
    input_tokens = CASE WHEN excluded.input_tokens IS NULL THEN input_tokens
      ELSE coalesce(input_tokens, 0) + excluded.input_tokens END,
    output_tokens = CASE WHEN excluded.output_tokens IS NULL THEN output_tokens
      ELSE coalesce(output_tokens, 0) + excluded.output_tokens END,
    cached_tokens = CASE WHEN excluded.cached_tokens IS NULL THEN cached_tokens
      ELSE coalesce(cached_tokens, 0) + excluded.cached_tokens END,
    cache_write_tokens = CASE WHEN excluded.cache_write_tokens IS NULL THEN cache_write_tokens
      ELSE coalesce(cache_write_tokens, 0) + excluded.cache_write_tokens END,
    credits = CASE WHEN excluded.credits IS NULL THEN credits
      ELSE coalesce(credits, 0) + excluded.credits END,
    cost_usd = CASE WHEN excluded.cost_usd IS NULL THEN cost_usd
      ELSE coalesce(cost_usd, 0) + excluded.cost_usd END,
    estimated_usd = CASE WHEN excluded.estimated_usd IS NULL THEN estimated_usd
      ELSE coalesce(estimated_usd, 0) + excluded.estimated_usd END,
    unpriced_tokens = CASE WHEN excluded.unpriced_tokens IS NULL THEN unpriced_tokens
      ELSE coalesce(unpriced_tokens, 0) + excluded.unpriced_tokens END;
END;

CREATE TRIGGER run_ended_on_day
AFTER UPDATE OF finished_at ON runs
WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL BEGIN
  INSERT INTO spent_by_day (day, agent, runs, turns, seconds) VALUES (
    (SELECT coalesce(day, date(NEW.finished_at, 'unixepoch')) FROM daemon), NEW.agent,
    1, NEW.turns, NEW.seconds
  ) ON CONFLICT (day, agent) DO UPDATE SET
    runs = runs + 1, turns = turns + excluded.turns, seconds = seconds + excluded.seconds;
END;
