-- What an issue asked for when its run began; NULL is unknown.

ALTER TABLE runs ADD COLUMN description TEXT;
