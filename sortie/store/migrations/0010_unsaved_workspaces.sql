-- Since when a finished issue's workspace is known to hold work that is nowhere else; NULL: it is not.

ALTER TABLE workspaces ADD COLUMN unsaved_since REAL;
