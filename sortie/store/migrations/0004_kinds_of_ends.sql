-- Why Sortie itself stopped a run, and to which state a held issue could not be handed off: until
-- now only a sentence said so.

ALTER TABLE runs ADD COLUMN stopped_for TEXT;

UPDATE runs SET stopped_for = substr(error, length('the run was stopped: ') + 1)
WHERE status = 'cancelled' AND error IN (
  'the run was stopped: terminal',
  'the run was stopped: inactive',
  'the run was stopped: missing',
  'the run was stopped: operator'
);

ALTER TABLE holds ADD COLUMN handoff_state TEXT;

-- The sentence ends its state with the first colon; what the tracker said follows.
UPDATE holds SET handoff_state = nullif(
  substr(
    detail,
    length('it could not be moved to ') + 1,
    instr(detail, ': ') - length('it could not be moved to ') - 1
  ),
  'None'
)
WHERE reason = 'handoff_failed' AND detail LIKE 'it could not be moved to %: %';
