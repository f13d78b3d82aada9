"""Merge requests of one project, up to 50 by one question to GitLab's GraphQL API.

Rule 1: what is not read here is read by REST; an error here is never the last word.
Rule 2: where GraphQL is refused, as by an earlier server, it is not asked again for an hour.
Rule 3: where GitLab fails over a question, less is asked for at once, for an hour.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import trio

from sortie.forges.gitlab.nodes import QUERY, ReadRequest, read_requests
from sortie.http.answers import HttpAnswer
from sortie.http.client import HttpClient
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.http.requests import HttpRequest, error_text_in_json
from sortie.model import PullRequest, TrackerError
from sortie.telemetry.log.structlog_alone import structlog

log = structlog.get_logger()

BATCH = 50
"""Merge requests of one question."""

REFUSED_LIFE = 3600.0
"""Seconds for which GraphQL is not asked again that was refused, or less is asked for at once."""

_REFUSALS = frozenset({400, 401, 403, 404, 405, 410, 422})
_TIMEOUT = "timeout on"
"""How GitLab begins the error of a question that took it too long."""


class _Failed(Exception):
    """A question was not answered, and one for less may be."""


class _Refused(Exception):
    """This server, or this token, does not answer such questions."""


class MergeRequestBatches:
    """Reads merge requests of a project together."""

    def __init__(self, client: HttpClient, name: str) -> None:
        self._client = client
        self._name = name
        path = "/" + str(client.endpoint).partition("://")[2].partition("/")[2]
        self._path = f"{path.rstrip('/').removesuffix('/v4')}/graphql"
        self._refused_until = -math.inf
        self._size, self._small_until = BATCH, -math.inf
        self._is_refusal_logged = False

    async def read(self, pull_requests: Sequence[PullRequest]) -> dict[str, ReadRequest]:
        """Return merge requests by their ids; those that are gone, or have to be read by REST, are
        left out. Raises TrackerError where GitLab wants to be left alone."""
        found: dict[str, ReadRequest] = {}
        todo = list(pull_requests)
        while todo and trio.current_time() >= self._refused_until:
            if trio.current_time() >= self._small_until:
                self._size = BATCH
            some = todo[: self._size]
            try:
                found |= await self._ask(some)
            except _Refused as exc:
                self._refuse(str(exc))
            except _Failed:
                if len(some) == 1:
                    break
                self._size = len(some) // 4 or 1
                self._small_until = trio.current_time() + REFUSED_LIFE
            else:
                todo = todo[len(some) :]
        return found

    def _refuse(self, why: str) -> None:
        self._refused_until = trio.current_time() + REFUSED_LIFE
        if not self._is_refusal_logged:
            self._is_refusal_logged = True
            log.warning("forge.graphql_refused", repository=self._name, error=why)

    async def _ask(self, some: Sequence[PullRequest]) -> dict[str, ReadRequest]:
        """Return the merge requests of one answer. Raises _Failed, _Refused, and TrackerError where
        GitLab wants to be left alone."""
        variables = {"project": self._name, "numbers": [str(one.number) for one in some]}
        request = HttpRequest(
            method="POST",
            path=self._path,
            from_root=True,
            what=f"cannot read {len(some)} merge requests",
            body={"query": QUERY, "variables": variables},
            wanted=_REFUSALS,
        )
        try:
            answer = await self._client.ask(request)
        except TrackerError as exc:
            if exc.retry_after is not None:
                raise
            raise _Failed from exc
        try:
            return read_requests(_data(answer))
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise _Refused(f"the answer has another shape: {exc!r}") from exc


def _data(answer: HttpAnswer) -> dict[str, Any]:
    """Return the data of an answer. Raises _Failed or _Refused."""
    if not answer.ok:
        raise _Refused(f"it answered {answer.status}: {error_text_in_json(answer)[:300]}")
    body = mapping_of(answer.json())
    errors = [word_of(mapping_of(error).get("message")) for error in list_of(body.get("errors"))]
    if any(error.lower().startswith(_TIMEOUT) for error in errors):
        raise _Failed
    if errors:
        raise _Refused("; ".join(errors)[:300])
    data = body.get("data")
    if not isinstance(data, dict) or data.get("project") is None:
        raise _Refused("it does not show the project")
    return data
