"""The leases of workflows, in the schema that all daemons of a database share.

Rule 1: times are the server's; no clock of a daemon is written or compared.
Rule 2: a lease is acquired with a new token, and only where the one before has expired or was given
back. What still writes for an older token is refused by the lock that its transactions take, and
its session is ended.
Methods raise psycopg.Error, and StoreError for a server that cannot serve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sortie.store.leases import LeaseStanding
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.postgres_lock import end_leader

CHANNEL = "sortie_leases"
"""On which daemons are told that a lease was given back or acquired."""

DAEMON_SECONDS = 15.0
"""How long a daemon counts as alive after it was last heard of."""

_KEPT_DAYS = 1  # a daemon that is gone is shown for that long

_STANDING = """
SELECT workflow, token, daemon, name,
  extract(epoch FROM expires - now())::float8 AS left,
  extract(epoch FROM expires)::float8 AS expires
FROM leases WHERE workflow = ANY(%(workflows)s::text[])
"""

_ACQUIRED = """
UPDATE leases SET token = nextval('lease_tokens'), daemon = %(daemon)s, name = %(name)s,
  since = now(), expires = now() + make_interval(secs => %(seconds)s::float8)
WHERE workflow = %(workflow)s AND token = %(token)s
  AND expires <= now() - make_interval(secs => %(wait)s::float8)
RETURNING token
"""

_FORMER_ENDED = """
UPDATE leaderships SET ended_by = 'expired', until = now()
WHERE workflow = %(workflow)s AND until IS NULL
"""

_BEGUN = """
INSERT INTO leaderships (token, workflow, daemon, name, since)
SELECT token, workflow, daemon, name, since FROM leases WHERE token = %(token)s
"""

_RENEWED = """
UPDATE leases SET expires = now() + make_interval(secs => mine.seconds)
FROM unnest(%(tokens)s::bigint[], %(seconds)s::float8[]) AS mine (token, seconds)
WHERE leases.token = mine.token
RETURNING leases.token
"""

_GIVEN_BACK = """
UPDATE leases SET expires = now(), daemon = NULL, name = NULL
WHERE token = %(token)s RETURNING token
"""


_FORGOTTEN = """
WITH gone AS (
  DELETE FROM {schema}.leaderships
  WHERE workflow = %(workflow)s AND until < to_timestamp(%(before)s::float8) RETURNING ended_by
)
INSERT INTO {schema}.forgotten_leaderships AS known (workflow, ended_by, times)
SELECT %(workflow)s, ended_by, count(*) FROM gone GROUP BY ended_by
ON CONFLICT (workflow, ended_by) DO UPDATE SET times = known.times + excluded.times
"""

_DATABASE = """
SELECT system_identifier || '/' || (
  SELECT oid FROM pg_database WHERE datname = current_database()
) AS id FROM pg_control_system()
"""


class PostgresLeases:
    """The leases as one daemon sees them, by a connection to the shared schema."""

    def __init__(self, connection: PostgresConnection, daemon: str, name: str) -> None:
        self._connection = connection
        self.daemon = daemon
        self.name = name

    def join(
        self, version: str, weight: float, fit: Iterable[str], workflows: Iterable[str] = ()
    ) -> None:
        """Be known as a candidate for workflows that this daemon is fit for, and for no others; all
        of ``workflows`` have a lease from now on, too."""
        wanted = sorted(fit)
        known = sorted({*wanted, *workflows})
        with self._connection.begun():
            self._connection.execute(
                "INSERT INTO daemons (id, name, version, weight, expires) VALUES (%(id)s, %(name)s,"
                " %(version)s, %(weight)s, now() + make_interval(secs => %(seconds)s::float8))"
                " ON CONFLICT (id) DO UPDATE SET weight = excluded.weight,"
                " expires = excluded.expires",
                id=self.daemon,
                name=self.name,
                version=version,
                weight=weight,
                seconds=DAEMON_SECONDS,
            )
            self._connection.execute(
                "DELETE FROM candidates WHERE daemon = %(id)s AND workflow <> ALL(%(w)s::text[])",
                id=self.daemon,
                w=wanted,
            )
            self._connection.execute(
                "INSERT INTO candidates SELECT workflow, %(id)s FROM unnest(%(w)s::text[])"
                " AS workflow ON CONFLICT DO NOTHING",
                id=self.daemon,
                w=wanted,
            )
            self._connection.execute(
                "INSERT INTO leases (workflow, token, expires)"
                " SELECT workflow, nextval('lease_tokens'), 'epoch'"
                " FROM unnest(%(w)s::text[]) AS workflow ON CONFLICT DO NOTHING",
                w=known,
            )
            self._connection.execute("COMMIT")

    def database(self) -> str:
        """Return what tells this database from all others, also after a failover."""
        return str(self._connection.execute(_DATABASE)[0]["id"])

    def leave(self) -> None:
        """Be a candidate for nothing any more."""
        self._connection.execute("DELETE FROM daemons WHERE id = %(id)s", id=self.daemon)

    def standings(self, workflows: Iterable[str]) -> Mapping[str, LeaseStanding]:
        """Return how leases stand, by their workflows."""
        wanted = sorted(workflows)
        weights: dict[str, dict[str, float]] = {workflow: {} for workflow in wanted}
        for row in self._connection.execute(
            "SELECT workflow, id, weight FROM candidates JOIN daemons ON id = daemon"
            " WHERE workflow = ANY(%(workflows)s::text[]) AND expires > now() AND NOT draining",
            workflows=wanted,
        ):
            weights[row["workflow"]][row["id"]] = row["weight"]
        return {
            row["workflow"]: LeaseStanding(
                workflow=row["workflow"],
                token=row["token"],
                daemon=row["daemon"],
                name=row["name"],
                left=row["left"],
                expires=row["expires"],
                candidates=weights[row["workflow"]],
            )
            for row in self._connection.execute(_STANDING, workflows=wanted)
        }

    def acquire(self, standing: LeaseStanding, seconds: float, wait: float) -> int | None:
        """Take a lease that has been over for ``wait`` seconds; return its token.

        Returns None where another daemon was first, or has renewed it.
        """
        # A leader that was stopped within a transaction would hold up the statement below.
        end_leader(self._connection, standing.workflow, standing.token)
        with self._connection.begun():
            taken = self._connection.execute(
                _ACQUIRED,
                workflow=standing.workflow,
                token=standing.token,
                daemon=self.daemon,
                name=self.name,
                seconds=seconds,
                wait=wait,
            )
            if not taken:
                return None
            token = int(taken[0]["token"])
            self._connection.execute(_FORMER_ENDED, workflow=standing.workflow)
            self._connection.execute(_BEGUN, token=token)
            self._connection.execute(f"NOTIFY {CHANNEL}; COMMIT")
        return token

    def renew(self, leases: Mapping[int, float]) -> frozenset[int]:
        """Renew leases, by their tokens, for so many seconds; return those that are held still."""
        if not leases:
            return frozenset()
        tokens, seconds = list(leases), list(leases.values())
        rows = self._connection.execute(_RENEWED, tokens=tokens, seconds=seconds)
        return frozenset(int(row["token"]) for row in rows)

    def give_back(self, token: int, ending: str) -> None:
        """Let others acquire a lease at once, as nothing is done for it any more; ``ending`` is
        ``released``, ``moved``, ``drained``, ``unfit`` or ``expired``."""
        with self._connection.begun():
            if self._connection.execute(_GIVEN_BACK, token=token):
                self._connection.execute(
                    "UPDATE leaderships SET until = now(), ended_by = %(ending)s"
                    " WHERE token = %(token)s",
                    token=token,
                    ending=ending,
                )
            self._connection.execute(f"NOTIFY {CHANNEL}; COMMIT")

    def drain(self, *, draining: bool) -> None:
        """Have this daemon lead nothing, or lead again."""
        statement = "UPDATE daemons SET draining = %(draining)s WHERE id = %(id)s"
        self._connection.execute(statement, id=self.daemon, draining=draining)
        self._connection.execute(f"NOTIFY {CHANNEL}")

    def stay(self) -> bool | None:
        """Be known as alive; return whether this daemon is to lead nothing, None where the server
        has forgotten it."""
        rows: Sequence[Mapping[str, object]] = self._connection.execute(
            "UPDATE daemons SET expires = now() + make_interval(secs => %(seconds)s::float8)"
            " WHERE id = %(id)s RETURNING draining",
            id=self.daemon,
            seconds=DAEMON_SECONDS,
        )
        return bool(rows[0]["draining"]) if rows else None

    def forget_the_gone(self) -> None:
        """Delete daemons that have not been heard of for a day."""
        self._connection.execute(
            f"DELETE FROM daemons WHERE expires < now() - interval '{_KEPT_DAYS} days'"
        )


def forget_leaderships(connection: PostgresConnection, before: float) -> None:
    """Delete leaderships of the workflow of a connection's address that ended before a Unix time;
    how they ended stays counted. For a leader, within a transaction."""
    address = connection.address
    schema = '"' + address.shared_schema.replace('"', '""') + '"'
    statement = _FORGOTTEN.format(schema=schema.replace("%", "%%"))
    connection.execute(statement, workflow=address.schema, before=before)
