"""What errors of a PostgreSQL server mean, and what can be done."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg

from sortie.model import StoreError
from sortie.store.postgres_address import PostgresAddress

_ADVICE: Mapping[str, str] = {
    "08": "the connection was lost; a daemon that runs goes on when the server is back",
    "22": "what was to be written cannot be stored; report this",
    "23": "what was to be written contradicts what is recorded; report this",
    "25006": "the server is read-only, as a standby is; name the primary in store.url",
    "25P03": "the server ended a session that was idle; see idle_in_transaction_session_timeout",
    "28": "the server refuses this user; check user and password in store.url, and pg_hba.conf",
    "3D": "there is no such database; make it with createdb",
    "40": "other transactions were in the way; it is tried again",
    "42501": "this user lacks a right; make the schema with CREATE SCHEMA ... AUTHORIZATION",
    "42": "its tables are not as they should be; restore a backup, or report this",
    "53100": "the server's disk is full; free some space; a daemon that runs goes on then",
    "53300": "the server has no connection left; raise max_connections, or end others",
    "53": "the server is short of something; a daemon that runs goes on when that is over",
    "55P03": "another session keeps a table locked; find it in pg_locks and end it",
    "57014": "the server cancelled the statement; see statement_timeout",
    "57": "the server is being stopped, or is starting; a daemon that runs goes on when it is back",
    "58": "the server cannot read or write its files; check its disk",
    "XX": "the server's files are damaged; restore a backup",
}
"""By SQLSTATE, or by its class."""

_UNREACHABLE = (
    "the server cannot be reached, does not let this user in, or the connection was lost; a daemon"
    " that runs goes on when it is back"
)


_SILENT = (
    "the server gave no answer within {:g} s: it hangs, is cut off, or waits for its synchronous"
    " standby; a daemon that runs goes on when it answers"
)


def explanation(
    error: psycopg.Error, attempt: str, address: PostgresAddress, unanswered: float | None = None
) -> StoreError:
    """Return the error to raise in place of the driver's; ``attempt`` is a verb such as "read".

    ``unanswered`` are the seconds after which the server was given up, None where it was not. The
    driver's own words are repeated without secrets.
    """
    state = error.sqlstate or ""
    known = "PostgreSQL gave an error without a known remedy"
    if not state and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        known = _UNREACHABLE if unanswered is None else _SILENT.format(unanswered)
    advice = _ADVICE.get(state) or _ADVICE.get(state[:2], known)
    code = state or type(error).__name__
    said = address.shown(error)
    return StoreError(f"cannot {attempt} the database {address.name}: {advice} ({code}: {said})")
