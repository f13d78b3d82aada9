-- Comments that are to be made, or may have been made by a life that was killed meanwhile.

CREATE TABLE comments_due (
  run_id TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  issue TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (run_id, lifecycle)
) STRICT;
