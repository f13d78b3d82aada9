-- How many leaderships were forgotten, so that counts of their ends only grow.
CREATE TABLE forgotten_leaderships (
  workflow text NOT NULL,
  ended_by text NOT NULL,
  times bigint NOT NULL,
  PRIMARY KEY (workflow, ended_by)
);
