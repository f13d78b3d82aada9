-- The image of the container that a run's programs were in, and its digest; NULL is none.

ALTER TABLE runs ADD COLUMN image TEXT;
ALTER TABLE runs ADD COLUMN image_digest TEXT;
