"""What the shared schema tells of daemons and of past leaderships; it is only read here.

Functions raise psycopg.Error and StoreError, but for ``read_leaderships``, which explains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import psycopg

from sortie.store.database import Row
from sortie.store.leases import Fleet, KnownDaemon, Leadership
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_errors import explanation
from sortie.store.postgres_leases import DAEMON_SECONDS

LAST = 5
"""Leaderships of a workflow that are shown with it."""

_MOST_DAEMONS = 200

_DAEMONS = """
SELECT id, name, version, weight, draining, since,
  extract(epoch FROM now() - expires)::float8 AS over,
  ARRAY(SELECT workflow FROM leases JOIN candidates USING (workflow, daemon)
    WHERE leases.daemon = daemons.id AND leases.expires > now() ORDER BY workflow) AS leads
FROM daemons ORDER BY name, since LIMIT %(most)s::int
"""

_LEADERSHIP = "token, workflow, daemon, name, since, until, ended_by"

_LAST = f"""
SELECT {_LEADERSHIP} FROM unnest(%(workflows)s::text[]) AS wanted (name_of)
CROSS JOIN LATERAL (SELECT {_LEADERSHIP} FROM leaderships WHERE workflow = name_of
  ORDER BY token DESC LIMIT %(most)s::int) AS newest
"""

_ENDINGS = """
SELECT workflow, ended_by, sum(times)::bigint AS times FROM (
  SELECT workflow, ended_by, 1 AS times FROM leaderships WHERE ended_by IS NOT NULL
  UNION ALL SELECT workflow, ended_by, times FROM forgotten_leaderships
) AS ended WHERE workflow = ANY(%(workflows)s::text[]) GROUP BY workflow, ended_by
"""

_PAGE = f"""
SELECT {_LEADERSHIP} FROM leaderships
WHERE workflow = %(workflow)s AND (%(before)s::bigint IS NULL OR token < %(before)s::bigint)
ORDER BY token DESC LIMIT %(most)s::int
"""


class FleetWatch:
    """Sees the daemons again and again by the connection that renews leases."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._counted: Mapping[str, int | None] = {}
        self._endings: Mapping[str, Mapping[str, int]] = {}

    def see(self, workflows: Iterable[str], seen_at: float) -> Fleet:
        """Return all daemons, and how these workflows were led. Endings are counted anew only when
        there are further leaderships."""
        wanted = sorted(workflows)
        last: dict[str, tuple[Leadership, ...]] = dict.fromkeys(wanted, ())
        rows = self._connection.execute(_LAST, workflows=wanted, most=LAST)
        for row in sorted(rows, key=lambda row: -row["token"]):
            last[row["workflow"]] += (_leadership(row),)
        ended = {
            workflow: next((one.token for one in known if one.ended_by is not None), None)
            for workflow, known in last.items()
        }
        if ended != self._counted:
            self._endings = self._count(wanted)
            self._counted = ended
        daemons = self._connection.execute(_DAEMONS, most=_MOST_DAEMONS)
        return Fleet(
            seen_at=seen_at,
            daemons=tuple(map(_daemon, daemons)),
            last=last,
            endings=self._endings,
        )

    def _count(self, workflows: Sequence[str]) -> Mapping[str, Mapping[str, int]]:
        counts: dict[str, dict[str, int]] = {workflow: {} for workflow in workflows}
        for row in self._connection.execute(_ENDINGS, workflows=workflows):
            counts[row["workflow"]][row["ended_by"]] = row["times"]
        return counts


def read_leaderships(
    address: PostgresAddress, limit: int, before: int | None
) -> Sequence[Leadership]:
    """Return who led the workflow of an address, the newest first, by tokens below ``before``;
    nothing where no daemon has made the shared schema. Raises StoreError."""
    connection = PostgresConnection(address.of_shared_schema())
    try:
        rows = connection.execute(_PAGE, workflow=address.schema, before=before, most=limit)
    except psycopg.errors.UndefinedTable:
        return ()
    except psycopg.Error as error:
        raise explanation(error, "read the leases of", address) from None
    finally:
        connection.drop()
    return tuple(map(_leadership, rows))


def _leadership(row: Row) -> Leadership:
    return Leadership(
        token=row["token"],
        workflow=row["workflow"],
        daemon=row["daemon"],
        name=row["name"],
        since=row["since"],
        until=row["until"],
        ended_by=row["ended_by"],
    )


def _daemon(row: Row) -> KnownDaemon:
    silent = row["over"] + DAEMON_SECONDS
    return KnownDaemon(
        id=row["id"],
        name=row["name"],
        version=row["version"],
        weight=row["weight"],
        draining=row["draining"],
        since=row["since"],
        silent=max(silent, 0.0),
        is_alive=row["over"] < 0,
        leads=tuple(row["leads"]),
    )
