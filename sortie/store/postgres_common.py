"""What the leaders of a database tell each other of slots and usage limits, in its shared schema.

Rule 1: each statement that writes is a transaction of its own and looks at the lease of its writer,
so that nothing of a former leader is written, and no lock waits for a process that was stopped.
Rule 2: an older report never replaces a newer one.
Methods raise psycopg.Error, and StoreError for a server that cannot serve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

import msgspec
from msgspec import Struct

from sortie.model.times import rfc3339
from sortie.scheduler.common_slots import SlotReport, ToldGrants
from sortie.scheduler.common_usage import (
    CLAIM_SECONDS,
    ClaimTrial,
    CommonLimit,
    PutMet,
    PutOver,
    Step,
)
from sortie.scheduler.grants import SlotGrant
from sortie.store.postgres_connection import PostgresConnection

SLOTS = "@slots"
"""What the lease is called whose holder divides the slots; no workflow has such a name."""

REPORTED, TOLD = "sortie_slot_reports", "sortie_slot_grants"
"""The channels on which those who divide hear of reports, and leaders of what stands on record. A
message names the workflows that it concerns, a line for each; an empty one concerns all."""

_LONGEST_MESSAGE = 7000  # bytes; the server takes 8000

_PUT_REPORTS = """
WITH written AS (
  INSERT INTO slot_reports AS known (workflow, token, number, report)
  SELECT mine.workflow, mine.token, mine.number, mine.report
  FROM unnest(%(workflows)s::text[], %(tokens)s::bigint[], %(numbers)s::bigint[],
    %(reports)s::text[]) AS mine (workflow, token, number, report)
  JOIN leases ON leases.workflow = mine.workflow AND leases.token = mine.token
  FOR KEY SHARE OF leases
  ON CONFLICT (workflow) DO UPDATE
    SET token = excluded.token, number = excluded.number, report = excluded.report
    WHERE (known.token, known.number) < (excluded.token, excluded.number)
  RETURNING workflow)
SELECT count(pg_notify(%(channel)s, '')) AS written FROM written
"""

_REPORTS = """
SELECT slot_reports.workflow, report,
  leases.token = slot_reports.token AND leases.expires > now() AS led
FROM slot_reports JOIN leases ON leases.workflow = slot_reports.workflow
"""

_PUT_GRANTS = """
WITH written AS (
  INSERT INTO slot_grants (workflow, token, divider, grants)
  SELECT new.workflow, new.token, leases.token, new.grants
  FROM leases, unnest(%(workflows)s::text[], %(tokens)s::bigint[], %(grants)s::text[])
    AS new (workflow, token, grants)
  WHERE leases.workflow = %(slots)s AND leases.token = %(divider)s
  FOR KEY SHARE OF leases
  ON CONFLICT (workflow) DO UPDATE
    SET token = excluded.token, divider = excluded.divider, grants = excluded.grants
  RETURNING workflow)
SELECT count(*) AS written, pg_notify(%(channel)s, %(message)s) FROM written
"""

_GRANTS = "SELECT workflow, token, grants FROM slot_grants"

_MY_GRANTS = """
SELECT leases.token AS divider, leases.expires > now() AS divides, mine.workflow, mine.token,
  mine.grants
FROM leases LEFT JOIN slot_grants AS mine ON mine.workflow = ANY(%(workflows)s::text[])
WHERE leases.workflow = %(slots)s
"""

_RENEW = """
UPDATE leases SET expires = now() + make_interval(secs => %(seconds)s::float8)
WHERE workflow = %(slots)s AND token = %(token)s RETURNING token
"""

_LIMITS = """
SELECT account, generation, message, extract(epoch FROM until - now())::float8 AS left,
  resets_at, over, met_by, claimed_by,
  coalesce(extract(epoch FROM claimed_until - now())::float8, 0) AS claim_left
FROM usage_limits WHERE account = ANY(%(accounts)s::text[])
"""

_PUT_MET = """
WITH written AS (
  INSERT INTO usage_limits AS known
    (account, generation, message, until, resets_at, over, met_by)
  SELECT %(account)s, 1, %(message)s, now() + make_interval(secs => %(seconds)s::float8),
    %(resets_at)s::timestamptz, false, token
  FROM leases WHERE workflow = %(workflow)s AND token = %(token)s FOR KEY SHARE
  ON CONFLICT (account) DO UPDATE
    SET generation = known.generation + 1, message = excluded.message, until = excluded.until,
      resets_at = excluded.resets_at, over = false, met_by = excluded.met_by, claimed_by = NULL,
      claimed_until = NULL
    WHERE %(first_hand)s::int = 1 AND (known.over OR known.until <= now()
      OR excluded.resets_at IS NOT NULL AND excluded.resets_at IS DISTINCT FROM known.resets_at)
  RETURNING account)
SELECT pg_notify(%(channel)s, '') FROM written
"""

_PUT_OVER = """
WITH written AS (
  UPDATE usage_limits
  SET generation = generation + 1, over = true, claimed_by = NULL, claimed_until = NULL
  WHERE account = %(account)s AND generation = %(generation)s AND NOT over AND EXISTS (
    SELECT FROM leases WHERE workflow = %(workflow)s AND token = %(token)s FOR KEY SHARE)
  RETURNING account)
SELECT pg_notify(%(channel)s, '') FROM written
"""

_CLAIM = """
UPDATE usage_limits SET claimed_by = %(token)s,
  claimed_until = now() + make_interval(secs => %(seconds)s::float8)
WHERE account = %(account)s AND generation = %(generation)s AND NOT over
  AND (claimed_by IS NULL OR claimed_by = %(token)s OR claimed_until <= now())
  AND EXISTS (SELECT FROM leases WHERE workflow = %(workflow)s AND token = %(token)s FOR KEY SHARE)
"""


class OwnGrants(Struct, frozen=True, kw_only=True):
    """What stands on record for some workflows. ``divider`` is the token of the daemon that divides
    now, None while none does."""

    divider: int | None
    told: Mapping[str, ToldGrants]


class CommonTables:
    """The tables, by a connection to the shared schema."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection

    def begin_session(self) -> None:
        """Set what statements here rely on, in a new session."""
        self._connection.execute("SET application_name = 'sortie slots'")
        self._connection.execute("SET lock_timeout = '2s'")
        self._connection.execute(f"LISTEN {TOLD}")
        self._connection.execute(f"LISTEN {REPORTED}")
        self._connection.execute(
            "INSERT INTO leases (workflow, token, expires)"
            " VALUES (%(slots)s, nextval('lease_tokens'), 'epoch') ON CONFLICT DO NOTHING",
            slots=SLOTS,
        )

    def put_reports(self, reports: Mapping[str, SlotReport]) -> None:
        """Put the reports of leaders on record, those of former leaders and older ones excepted."""
        self._connection.execute(
            _PUT_REPORTS,
            workflows=list(reports),
            tokens=[report.token for report in reports.values()],
            numbers=[report.number for report in reports.values()],
            reports=[msgspec.json.encode(report).decode() for report in reports.values()],
            channel=REPORTED,
        )

    def reports(self) -> tuple[dict[str, SlotReport], frozenset[str]]:
        """Return the last report of each workflow, and which of these are led by its author."""
        rows = self._connection.execute(_REPORTS)
        reports = {
            row["workflow"]: msgspec.json.decode(row["report"], type=SlotReport) for row in rows
        }
        return reports, frozenset(row["workflow"] for row in rows if row["led"])

    def put_grants(self, divider: int, told: Mapping[str, ToldGrants]) -> bool:
        """Tell leaders what they may have; return False where this daemon divides no more."""
        names = "\n".join(told)
        rows = self._connection.execute(
            _PUT_GRANTS,
            workflows=list(told),
            tokens=[one.token for one in told.values()],
            grants=[msgspec.json.encode(one.grants).decode() for one in told.values()],
            slots=SLOTS,
            divider=divider,
            channel=TOLD,
            message=names if len(names.encode()) < _LONGEST_MESSAGE else "",
        )
        return int(rows[0]["written"]) == len(told)

    def all_grants(self) -> dict[str, ToldGrants]:
        """Return what all leaders were told."""
        rows = self._connection.execute(_GRANTS)
        return {row["workflow"]: _told(row["token"], row["grants"]) for row in rows}

    def grants(self, workflows: Iterable[str]) -> OwnGrants:
        """Return what the leaders of these workflows were told."""
        rows = self._connection.execute(_MY_GRANTS, workflows=sorted(workflows), slots=SLOTS)
        divides = bool(rows and rows[0]["divides"])
        return OwnGrants(
            divider=int(rows[0]["divider"]) if divides else None,
            told={
                row["workflow"]: _told(row["token"], row["grants"])
                for row in rows
                if row["workflow"] is not None
            },
        )

    def renew(self, divider: int, seconds: float) -> bool:
        """Divide for so many seconds more; return False where another daemon does."""
        return bool(self._connection.execute(_RENEW, slots=SLOTS, token=divider, seconds=seconds))

    def limits(self, accounts: Iterable[str]) -> dict[str, CommonLimit]:
        """Return what is on record of the usage limits of accounts."""
        rows = self._connection.execute(_LIMITS, accounts=sorted(accounts))
        return {row["account"]: CommonLimit(**row) for row in rows}

    def put(self, workflow: str, token: int, step: Step) -> None:
        """Put on record what a workflow has met or tries, if it is led with the token."""
        mine: dict[str, str | int] = {"workflow": workflow, "token": token}
        match step:
            case PutMet(limit, seconds, first_hand):
                at = limit.resets_at
                self._connection.execute(
                    _PUT_MET,
                    account=limit.account,
                    message=limit.message,
                    seconds=seconds,
                    resets_at=None if at is None else rfc3339(at),
                    first_hand=int(first_hand),
                    channel=TOLD,
                    **mine,
                )
            case PutOver(account, generation):
                self._connection.execute(
                    _PUT_OVER, account=account, generation=generation, channel=TOLD, **mine
                )
            case ClaimTrial(account, generation):
                self._connection.execute(
                    _CLAIM, account=account, generation=generation, seconds=CLAIM_SECONDS, **mine
                )
            case _:
                assert_never(step)


def _told(token: int, grants: str) -> ToldGrants:
    return ToldGrants(token=token, grants=msgspec.json.decode(grants, type=tuple[SlotGrant, ...]))
