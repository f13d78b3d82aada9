-- What a database is, whatever its path: its daemon and all that descends from it are named by ``id``.

CREATE TABLE identity (
  id TEXT NOT NULL,
  device INTEGER,             -- the file, as the last daemon had it; NULL before the first
  inode INTEGER,
  pid INTEGER,                -- the last daemon
  started_at REAL,
  path_named INTEGER NOT NULL -- whether an earlier version may have left what is named by the path
) STRICT;

INSERT INTO identity (id, path_named)
SELECT lower(hex(randomblob(16))), EXISTS (SELECT 1 FROM runs);
