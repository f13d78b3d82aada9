-- Until a hold is settled, the next read of its issue is what it is compared with.

ALTER TABLE holds ADD COLUMN settled INTEGER NOT NULL DEFAULT 1;
