-- Statements by name; each ends with a semicolon. They are SQLite's, and written so that PostgreSQL
-- takes them too, but for what `postgres_statements` translates.

-- name: journal_mode
PRAGMA journal_mode = WAL;

-- name: synchronous
PRAGMA synchronous = FULL;

-- name: fullfsync
PRAGMA fullfsync = ON;

-- name: foreign_keys
PRAGMA foreign_keys = ON;

-- name: journal_size_limit
PRAGMA journal_size_limit = 16777216;

-- name: identify
SELECT
  (SELECT user_version FROM pragma_user_version) AS version,
  (SELECT application_id FROM pragma_application_id) AS owner,
  (SELECT count(*) FROM sqlite_schema) AS tables;

-- name: identity
SELECT id, device, inode, pid, started_at, path_named FROM identity;

-- name: begin_life
UPDATE identity SET
  id = :id, device = :device, inode = :inode, pid = :pid, started_at = :started_at;

-- name: forget_path_name
UPDATE identity SET path_named = 0;

-- name: prove_writable
UPDATE daemon SET checks = checks + 1;

-- name: insert_run
INSERT INTO runs (
  run_id, issue_id, identifier, issue, title, description, state, failures, continuations,
  interruptions, host, agent, rule, started_at, seen_at
) VALUES (
  :run_id, :issue_id, :identifier, :issue, :title, :description, :state, :failures, :continuations,
  :interruptions, :host, :agent, :rule, :at, :at
);

-- name: set_run_workspace
UPDATE runs SET workspace = :workspace, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_turns
UPDATE runs SET turns = :turns, turn = NULL, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_turn
UPDATE runs SET turn = :turn, turn_at = :at, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: note_take_over
UPDATE runs SET taken_over = CASE WHEN taken_over IS NULL THEN :text ELSE taken_over || '; ' || :text END
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_process
UPDATE runs SET pid = :pid, process_started_at = :process_started_at, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_session
UPDATE runs SET session_id = :session_id, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_image
UPDATE runs SET image = :image, image_digest = :image_digest, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_spent
UPDATE runs SET
  tokens = :tokens,
  input_tokens = :input_tokens,
  output_tokens = :output_tokens,
  cached_tokens = :cached_tokens,
  cache_write_tokens = :cache_write_tokens,
  credits = :credits,
  cost_usd = :cost_usd,
  estimated_usd = :estimated_usd,
  unpriced_tokens = :unpriced_tokens,
  seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_activity
UPDATE runs SET
  model = :model,
  files_modified = :files_modified,
  files_omitted = :files_omitted,
  tool_uses = :tool_uses,
  seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: set_run_delivery
UPDATE runs SET delivery = :delivery, delivery_pending = :pending, seen_at = max(seen_at, :at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- name: settle_deliveries
UPDATE runs SET delivery_pending = 0
WHERE delivery_pending AND issue_id = :issue_id AND run_id <> :run_id;

-- name: replace_diff
INSERT INTO diffs (run_id, diff) VALUES (:run_id, :diff)
ON CONFLICT (run_id) DO UPDATE SET diff = excluded.diff;

-- name: finish_run
UPDATE runs SET
  issue = NULL,
  turn = NULL,
  status = :status,
  error_kind = :error_kind,
  error = :error,
  turns = coalesce(:turns, turns),
  stopped_for = :stopped_for,
  state = coalesce(:state, state),
  answer = :answer,
  branch = :branch,
  head_commit = :head_commit,
  commits = :commits,
  files_changed = :files_changed,
  uncommitted = :uncommitted,
  finished_at = :at,
  seconds = max(0, CASE WHEN seq <= :inherited THEN seen_at ELSE :at END - started_at)
WHERE run_id = :run_id AND finished_at IS NULL;

-- The issue's newest run is the one that it is handed off after.
-- name: set_handed_off
UPDATE runs SET state = :state, handed_off_at = :at
WHERE seq = (
  SELECT seq FROM runs WHERE identifier = :identifier AND issue_id = :issue_id
  ORDER BY started_at DESC, seq DESC LIMIT 1
);

-- name: upsert_workspace
INSERT INTO workspaces (host, path, issue_id, identifier, rule)
VALUES (:host, :path, :issue_id, :identifier, :rule)
ON CONFLICT (host, path) DO UPDATE
SET issue_id = excluded.issue_id, identifier = excluded.identifier, rule = excluded.rule,
  unsaved_since = NULL;

-- name: set_workspace_unsaved
UPDATE workspaces SET unsaved_since = :at
WHERE host = :host AND path = :path AND unsaved_since IS NULL;

-- A session lived in its directory, and does not in another of the same name.
-- name: forget_sessions
UPDATE runs SET session_id = NULL
WHERE session_id IS NOT NULL AND host = :host AND workspace = :path AND issue_id IN (
  SELECT issue_id FROM workspaces WHERE host = :host AND path = :path
);

-- name: delete_workspace
DELETE FROM workspaces WHERE host = :host AND path = :path;

-- name: upsert_sessions
INSERT INTO sessions (issue_id, sessions) VALUES (:issue_id, :sessions)
ON CONFLICT (issue_id) DO UPDATE SET sessions = excluded.sessions;

-- name: delete_sessions
DELETE FROM sessions WHERE issue_id = :issue_id;

-- name: delete_spent
DELETE FROM spent_by_issue WHERE issue_id = :issue_id;

-- name: replace_retry
INSERT INTO retries (
  issue_id, issue, kind, triggered_by, failures, continuations, interruptions, delay, due_at, tries
) VALUES (
  :issue_id, :issue, :kind, :triggered_by, :failures, :continuations, :interruptions, :delay,
  :due_at, :tries
)
ON CONFLICT (issue_id) DO UPDATE SET
  issue = excluded.issue, kind = excluded.kind, triggered_by = excluded.triggered_by,
  failures = excluded.failures, continuations = excluded.continuations,
  interruptions = excluded.interruptions, delay = excluded.delay, due_at = excluded.due_at,
  tries = excluded.tries;

-- name: delete_retry
DELETE FROM retries WHERE issue_id = :issue_id;

-- name: replace_hold
INSERT INTO holds (issue_id, issue, reason, detail, since, settled, handoff_state)
VALUES (:issue_id, :issue, :reason, :detail, :since, :settled, :handoff_state)
ON CONFLICT (issue_id) DO UPDATE SET
  issue = excluded.issue, reason = excluded.reason, detail = excluded.detail,
  since = excluded.since, settled = excluded.settled, handoff_state = excluded.handoff_state;

-- name: rebase_hold
UPDATE holds SET issue = :issue, settled = :settled WHERE issue_id = :issue_id;

-- name: delete_hold
DELETE FROM holds WHERE issue_id = :issue_id;

-- name: replace_question
INSERT INTO questions (issue_id, asked, asked_at, delay, due_at)
VALUES (:issue_id, :asked, :asked_at, :delay, :due_at)
ON CONFLICT (issue_id) DO UPDATE SET
  asked = excluded.asked, asked_at = excluded.asked_at, delay = excluded.delay,
  due_at = excluded.due_at;

-- name: update_question
UPDATE questions SET asked = :asked WHERE issue_id = :issue_id;

-- name: delete_question
DELETE FROM questions WHERE issue_id = :issue_id;

-- name: all_questions
SELECT issue_id, asked, asked_at, delay, due_at FROM questions ORDER BY issue_id;

-- name: replace_watch
INSERT INTO watches (issue_id, issue, watch) VALUES (:issue_id, :issue, :watch)
ON CONFLICT (issue_id) DO UPDATE SET issue = excluded.issue, watch = excluded.watch;

-- name: delete_watch
DELETE FROM watches WHERE issue_id = :issue_id;

-- name: all_watches
SELECT issue, watch FROM watches ORDER BY issue_id;

-- name: replace_rule
INSERT INTO issue_rules (issue_id, rule) VALUES (:issue_id, :rule)
ON CONFLICT (issue_id) DO UPDATE SET rule = excluded.rule;

-- name: delete_rule
DELETE FROM issue_rules WHERE issue_id = :issue_id;

-- name: all_rules
SELECT issue_id, rule FROM issue_rules ORDER BY issue_id;

-- name: replace_stage
INSERT INTO stages (issue_id, passed) VALUES (:issue_id, :passed)
ON CONFLICT (issue_id) DO UPDATE SET passed = excluded.passed;

-- name: delete_stage
DELETE FROM stages WHERE issue_id = :issue_id;

-- name: all_stages
SELECT issue_id, passed FROM stages ORDER BY issue_id;

-- name: replace_comment
INSERT INTO comments_due (run_id, lifecycle, issue, body)
VALUES (:run_id, :lifecycle, :issue, :body)
ON CONFLICT (run_id, lifecycle) DO UPDATE SET issue = excluded.issue, body = excluded.body;

-- name: delete_comment
DELETE FROM comments_due WHERE run_id = :run_id AND lifecycle = :lifecycle;

-- name: all_comments
SELECT run_id, lifecycle, issue, body FROM comments_due ORDER BY rowid;

-- name: count_crash
INSERT INTO crashes (issue_id, issue, times) VALUES (:issue_id, :issue, 1)
ON CONFLICT (issue_id) DO UPDATE SET issue = excluded.issue, times = crashes.times + 1;

-- name: delete_crashes
DELETE FROM crashes WHERE issue_id = :issue_id;

-- name: set_paused
UPDATE daemon SET paused = :paused;

-- name: set_day
UPDATE daemon SET day = :day;

-- name: replace_limit
INSERT INTO usage_limits (account, message, since, until, delay, resets_at, times)
VALUES (:account, :message, :at, :at + :delay, :delay, :resets_at, :times)
ON CONFLICT (account) DO UPDATE SET
  message = excluded.message, until = excluded.until, delay = excluded.delay,
  resets_at = excluded.resets_at, times = excluded.times;

-- name: delete_limit
DELETE FROM usage_limits WHERE account = :account;

-- name: newest_seq
SELECT coalesce(max(seq), 0) AS seq FROM runs;

-- name: unfinished_runs
SELECT run_id, issue, failures, continuations, interruptions, host, pid, process_started_at,
  workspace, turns, started_at, seen_at, turn, turn_at, input_tokens, output_tokens, cached_tokens,
  cache_write_tokens, credits, cost_usd, estimated_usd, unpriced_tokens
FROM runs INDEXED BY runs_under_way WHERE finished_at IS NULL ORDER BY seq;

-- name: all_retries
SELECT issue, kind, triggered_by, failures, continuations, interruptions, delay, due_at, tries
FROM retries ORDER BY due_at, issue_id;

-- name: all_holds
SELECT issue, reason, detail, since, settled, handoff_state FROM holds ORDER BY since, issue_id;

-- name: all_sessions
SELECT issue_id, sessions FROM sessions;

-- name: all_spent
SELECT issue_id, input_tokens, output_tokens, cached_tokens, cache_write_tokens,
  credits, cost_usd, estimated_usd, unpriced_tokens
FROM spent_by_issue;

-- name: last_days
SELECT day,
  sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens,
  sum(cached_tokens) AS cached_tokens,
  sum(cache_write_tokens) AS cache_write_tokens,
  sum(credits) AS credits,
  sum(cost_usd) AS cost_usd,
  sum(estimated_usd) AS estimated_usd,
  sum(unpriced_tokens) AS unpriced_tokens
FROM spent_by_day GROUP BY day ORDER BY day DESC LIMIT 3;

-- name: spent_on_day
SELECT
  sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens,
  sum(cached_tokens) AS cached_tokens,
  sum(cache_write_tokens) AS cache_write_tokens,
  sum(credits) AS credits,
  sum(cost_usd) AS cost_usd,
  sum(estimated_usd) AS estimated_usd,
  sum(unpriced_tokens) AS unpriced_tokens
FROM spent_by_day WHERE day = :day;

-- name: days
SELECT day, agent, runs, turns, seconds,
  input_tokens, output_tokens, cached_tokens, cache_write_tokens,
  credits, cost_usd, estimated_usd, unpriced_tokens
FROM spent_by_day WHERE day IN (
  SELECT DISTINCT day FROM spent_by_day ORDER BY day DESC LIMIT :limit
) ORDER BY day DESC, agent;

-- name: all_limits
SELECT account, message, since, until, delay, resets_at, times
FROM usage_limits ORDER BY account;

-- name: agent_sessions
SELECT issue_id, host, agent, rule, workspace, session_id FROM runs
WHERE seq IN (
  SELECT max(runs.seq) FROM workspaces JOIN runs ON runs.issue_id = workspaces.issue_id
    AND runs.host = workspaces.host AND runs.workspace = workspaces.path
  WHERE runs.session_id IS NOT NULL GROUP BY runs.issue_id
)
ORDER BY issue_id;

-- name: pending_deliveries
SELECT issue_id, delivery FROM runs WHERE delivery_pending ORDER BY issue_id, seq;

-- name: diff_of_run
SELECT diff FROM diffs WHERE run_id = :run_id;

-- name: all_workspaces
SELECT issue_id, identifier, host, path, rule, unsaved_since FROM workspaces
ORDER BY issue_id, host, path;

-- name: all_crashes
SELECT issue, times FROM crashes ORDER BY issue_id;

-- name: paused
SELECT paused FROM daemon;

-- name: run_position
SELECT started_at, seq FROM runs WHERE run_id = :run_id;

-- History is read from a file of an earlier version too, whose runs have fewer columns.

-- name: history
SELECT *
FROM runs WHERE (started_at, seq) < (:started_at, :seq)
ORDER BY started_at DESC, seq DESC LIMIT :limit;

-- name: run_by_id
SELECT *
FROM runs WHERE run_id = :run_id;

-- Looks through the newest runs first; asked once, by a person.
-- name: newest_run_of_id
SELECT *
FROM runs WHERE issue_id = :issue_id
ORDER BY started_at DESC, seq DESC LIMIT 1;

-- name: history_of_issue
SELECT *
FROM runs WHERE identifier = :identifier AND (started_at, seq) < (:started_at, :seq)
ORDER BY started_at DESC, seq DESC LIMIT :limit;

-- Looks through the runs; asked by a person.
-- name: history_of_rule
SELECT *
FROM runs WHERE rule = :rule AND (cast(:identifier AS TEXT) IS NULL OR identifier = :identifier)
  AND (started_at, seq) < (:started_at, :seq)
ORDER BY started_at DESC, seq DESC LIMIT :limit;

-- name: spent_by_rule
SELECT rule, count(*) AS runs, sum(turns) AS turns, sum(seconds) AS seconds,
  sum(input_tokens) AS input_tokens,
  sum(output_tokens) AS output_tokens,
  sum(cached_tokens) AS cached_tokens,
  sum(cache_write_tokens) AS cache_write_tokens,
  sum(credits) AS credits,
  sum(cost_usd) AS cost_usd,
  sum(estimated_usd) AS estimated_usd,
  sum(unpriced_tokens) AS unpriced_tokens
FROM runs WHERE finished_at >= :since GROUP BY rule ORDER BY rule;

-- name: forget_runs
DELETE FROM runs WHERE seq IN (
  SELECT seq FROM runs AS old
  WHERE started_at < :before AND finished_at < :before
    -- A seq is not used again as long as the last one stays.
    AND seq < (SELECT max(seq) FROM runs)
    AND (
      EXISTS (
        SELECT 1 FROM runs AS newer
        WHERE newer.identifier = old.identifier AND newer.issue_id = old.issue_id
          AND (newer.started_at, newer.seq) > (old.started_at, old.seq)
      )
      OR NOT (
        EXISTS (SELECT 1 FROM retries WHERE retries.issue_id = old.issue_id)
        OR EXISTS (SELECT 1 FROM holds WHERE holds.issue_id = old.issue_id)
        OR EXISTS (SELECT 1 FROM sessions WHERE sessions.issue_id = old.issue_id)
        OR EXISTS (SELECT 1 FROM watches WHERE watches.issue_id = old.issue_id)
        -- Not one by one: workspaces have no index by issue.
        OR old.issue_id IN (SELECT issue_id FROM workspaces)
      )
    )
  ORDER BY started_at, seq LIMIT :limit
);

-- What is known of one issue, for who wants all of it forgotten; asked by a person.

-- name: ids_of_issue
SELECT issue_id FROM runs WHERE identifier = :issue OR issue_id = :issue
UNION SELECT issue_id FROM workspaces WHERE identifier = :issue OR issue_id = :issue
UNION SELECT issue_id FROM sightings WHERE issue_id = :issue;

-- name: runs_of_issue
SELECT run_id, finished_at FROM runs WHERE issue_id = :issue_id ORDER BY seq;

-- name: workspaces_of_issue
SELECT host, path FROM workspaces WHERE issue_id = :issue_id ORDER BY host, path;

-- name: delete_comments_of_issue
DELETE FROM comments_due
WHERE run_id IN (SELECT run_id FROM runs WHERE issue_id = :issue_id);

-- name: delete_runs_of_issue
DELETE FROM runs WHERE issue_id = :issue_id;

-- name: delete_workspaces_of_issue
DELETE FROM workspaces WHERE issue_id = :issue_id;

-- name: delete_sighting
DELETE FROM sightings WHERE issue_id = :issue_id;

-- name: totals
SELECT runs, turns, credits, tokens, cost_usd, estimated_usd, seconds FROM totals;

-- name: note_sighting
INSERT INTO sightings (issue_id, digest, first_seen, changed_at)
VALUES (:issue_id, :digest, :at, :at)
ON CONFLICT (issue_id) DO UPDATE SET digest = excluded.digest, changed_at = excluded.changed_at
WHERE sightings.digest <> excluded.digest;

-- name: sighting
SELECT first_seen, changed_at FROM sightings WHERE issue_id = :issue_id;

-- Notifications. Without `state <> 'sent'` SQLite would not use the index of what is open.

-- name: insert_notification
INSERT INTO notifications (id, key, target, event, issue_id, notification, created_at)
VALUES (
  (SELECT coalesce(max(id), 0) + 1 FROM notifications),
  :key, :target, :event, :issue_id, :notification, :at
)
ON CONFLICT (key, target) DO NOTHING;

-- name: waiting_notifications
SELECT id, notification, created_at, tries, unsure FROM notifications
WHERE target = :target AND state = 'waiting' AND state <> 'sent'
  AND (cast(:event AS TEXT) IS NULL OR event = :event)
ORDER BY id LIMIT :limit;

-- name: try_notification
UPDATE notifications SET tries = tries + 1, unsure = 1 WHERE id = :id;

-- name: settle_notification
UPDATE notifications SET
  state = :state, tries = :tries, unsure = :unsure, error = :error, ended_at = :ended_at
WHERE id = :id AND state = 'waiting';

-- name: give_up_notifications
UPDATE notifications SET state = 'dead', error = :error, ended_at = :at
WHERE target = :target AND state = 'waiting' AND state <> 'sent' AND created_at <= :before;

-- name: revive_notification
UPDATE notifications SET state = 'waiting', tries = 0, created_at = :at, ended_at = NULL
WHERE id = :id AND state = 'dead';

-- name: revive_notifications
UPDATE notifications SET state = 'waiting', tries = 0, created_at = :at, ended_at = NULL
WHERE state = 'dead' AND state <> 'sent';

-- name: notification_state
SELECT state FROM notifications WHERE id = :id;

-- name: open_notifications
SELECT target, state, count(*) AS count, min(created_at) AS oldest FROM notifications
WHERE state <> 'sent' GROUP BY target, state ORDER BY target, state;

-- name: list_notifications
SELECT id, key, target, event, notification, created_at, state, tries, unsure, error, ended_at
FROM notifications WHERE state <> 'sent' AND (cast(:state AS TEXT) IS NULL OR state = :state)
ORDER BY id LIMIT :limit;

-- name: notification_of_key
SELECT id FROM notifications WHERE key = :key LIMIT 1;

-- name: forget_notifications
DELETE FROM notifications WHERE id IN (
  SELECT id FROM notifications
  WHERE (state = 'sent' AND ended_at < :sent_before) OR (state = 'dead' AND ended_at < :dead_before)
  ORDER BY id LIMIT :limit
);

-- name: delete_notifications_of_issue
DELETE FROM notifications WHERE issue_id = :issue_id;

-- name: runs_of_period
SELECT status, count(*) AS count FROM runs
WHERE finished_at >= :since AND finished_at < :until GROUP BY status ORDER BY status;
