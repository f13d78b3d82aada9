"""Requests to the leaders of workflows, in the schema that all daemons of a database share.

Rule 1: a request is taken once, for one lease, and only as long as that lease is the newest one.
Rule 2: what was withdrawn before it was taken is never taken.
Methods raise psycopg.Error, and StoreError for a server that cannot serve.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from sortie.store.database import Row
from sortie.store.postgres_connection import PostgresConnection
from sortie.store.relay import RelayedAnswer, RelayedRequest, Withdrawn

REQUESTS, ANSWERS = "sortie_requests", "sortie_answers"
"""The channels on which daemons are told of requests and of answers."""

_KEPT = 60  # seconds for which a request is kept that its daemon does not ask for any more

_PUT = """
INSERT INTO relayed_requests
  (id, workflow, daemon, leader, method, target, caller, accept, sent, sent_type, expires)
SELECT %(id)s, workflow, %(daemon)s, name, %(method)s, %(target)s, %(caller)s, %(accept)s,
  %(sent)s, %(sent_type)s, now() + make_interval(secs => %(seconds)s::float8)
FROM leases WHERE workflow = %(workflow)s AND daemon IS NOT NULL AND expires > now()
RETURNING leader
"""

_TAKEN = """
WITH mine AS (
  SELECT workflow, token FROM leases
  WHERE token = ANY(%(tokens)s::bigint[]) AND expires > now() FOR KEY SHARE
)
UPDATE relayed_requests SET token = mine.token FROM mine
WHERE relayed_requests.workflow = mine.workflow AND relayed_requests.token IS NULL
  AND relayed_requests.expires > now()
RETURNING id, relayed_requests.workflow, method, target, caller, accept,
  coalesce(sent, ''::bytea) AS sent, coalesce(sent_type, '') AS sent_type, relayed_requests.token
"""

_ANSWERED = """
UPDATE relayed_requests SET status = %(status)s, headers = %(headers)s, body = %(body)s
WHERE id = %(id)s AND token = %(token)s RETURNING daemon
"""

_FETCHED = """
DELETE FROM relayed_requests WHERE id = ANY(%(ids)s::text[]) AND status IS NOT NULL
RETURNING id, status, headers, body
"""


class PostgresRelay:
    """The requests as one daemon sees them, by a connection to the shared schema."""

    def __init__(self, connection: PostgresConnection, daemon: str) -> None:
        self._connection = connection
        self._daemon = daemon

    def put(self, request: RelayedRequest, seconds: float) -> str | None:
        """Have the leader of a workflow answer, if it takes the request within ``seconds``; return
        its name, None where the workflow has no leader."""
        found = self._connection.execute(
            _PUT,
            id=request.id,
            workflow=request.workflow,
            daemon=self._daemon,
            method=request.method,
            target=request.target,
            caller=request.caller,
            accept=request.accept,
            sent=request.sent,
            sent_type=request.sent_type,
            seconds=seconds,
        )
        if not found:
            return None
        self._notify(REQUESTS, request.workflow)
        return str(found[0]["leader"])

    def take(self, tokens: Sequence[int]) -> list[RelayedRequest]:
        """Take the requests that wait for the holder of these leases."""
        rows = self._connection.execute(_TAKEN, tokens=tokens)
        return [RelayedRequest(**{**row, "sent": bytes(row["sent"])}) for row in rows]

    def answer(self, request: RelayedRequest, answer: RelayedAnswer) -> None:
        """Answer a request that was taken; one that is not waited for any more is forgotten."""
        asking = self._connection.execute(
            _ANSWERED,
            id=request.id,
            token=request.token,
            status=answer.status,
            headers=json.dumps(dict(answer.headers)),
            body=answer.body,
        )
        if asking:
            self._notify(ANSWERS, str(asking[0]["daemon"]))

    def answers(self, ids: Sequence[str]) -> Mapping[str, RelayedAnswer]:
        """Return the answers that have come, by the ids of their requests; they are forgotten."""
        rows = self._connection.execute(_FETCHED, ids=ids)
        return {row["id"]: _answer(row) for row in rows}

    def withdraw(self, id_: str) -> RelayedAnswer | Withdrawn:
        """Wait no more for an answer; return the one that has come meanwhile."""
        rows = self._connection.execute(
            "DELETE FROM relayed_requests WHERE id = %(id)s RETURNING token, status, headers, body",
            id=id_,
        )
        if not rows:
            return Withdrawn(was_taken=None)
        if rows[0]["status"] is not None:
            return _answer(rows[0])
        return Withdrawn(was_taken=rows[0]["token"] is not None)

    def forget_the_old(self) -> None:
        """Delete what daemons have left that are gone."""
        self._connection.execute(
            f"DELETE FROM relayed_requests WHERE expires < now() - interval '{_KEPT} seconds'"
        )

    def _notify(self, channel: str, word: str) -> None:
        self._connection.execute(
            "SELECT pg_notify(%(channel)s, %(word)s)", channel=channel, word=word
        )


def _answer(row: Row) -> RelayedAnswer:
    headers: dict[str, str] = json.loads(row["headers"])
    return RelayedAnswer(status=row["status"], headers=headers, body=bytes(row["body"]))
