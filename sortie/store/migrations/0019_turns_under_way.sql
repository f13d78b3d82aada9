-- The turn with which another daemon can go on, as JSON, and since when it is under way; and from
-- which daemons a run was taken over, and in which turns.

ALTER TABLE runs ADD COLUMN turn TEXT;
ALTER TABLE runs ADD COLUMN turn_at REAL;
ALTER TABLE runs ADD COLUMN taken_over TEXT;
