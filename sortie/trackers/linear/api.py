"""Linear's GraphQL API: one question or change, its errors by table, and lists in pages.

Linear answers errors with 200, 400 and other statuses alike, so the ``errors`` of an answer are
looked at before its status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sortie.http.answers import HttpAnswer, NoJson
from sortie.http.budget import BudgetHeaders, Reset, Use
from sortie.http.client import HttpClient
from sortie.http.credentials import FixedCredential, bearer, header
from sortie.http.json_values import list_of, mapping_of
from sortie.http.pages import walk
from sortie.http.requests import HttpRequest, Provider
from sortie.model import LostAnswer, TrackerError, TrackerErrorKind

Json = Any

SMALLEST_PAGE = 5

ERROR_KINDS: Mapping[str, TrackerErrorKind] = {
    "authentication error": TrackerErrorKind.CLOSED,
    "usage limit exceeded": TrackerErrorKind.CLOSED,
    "forbidden": TrackerErrorKind.PERMISSION,
    "feature not accessible": TrackerErrorKind.PERMISSION,
    "invalid input": TrackerErrorKind.INVALID,
    "user error": TrackerErrorKind.INVALID,
    "graphql error": TrackerErrorKind.INVALID,
    "AUTHENTICATION_ERROR": TrackerErrorKind.CLOSED,
    "FORBIDDEN": TrackerErrorKind.PERMISSION,
    "INPUT_ERROR": TrackerErrorKind.INVALID,
    "GRAPHQL_VALIDATION_FAILED": TrackerErrorKind.INVALID,
}
"""What ``extensions.type``, or else ``extensions.code``, of an error means; any other may pass."""

_NOT_FOUND = "entity not found"
_TOO_COMPLEX = "complex"
_WITH_ERRORS = frozenset({400, 401, 403, 404, 409, 422})
"""Statuses whose answers say more than they do."""


class NotTaken(TrackerError):
    """Linear refused a change as a whole: it has made nothing of it."""


class TooComplex(TrackerError):
    """A question asks for too much at once."""


def credential_of(key: str, kind: str) -> FixedCredential:
    """Return how requests are signed: a personal key stands bare, an OAuth token is a bearer's."""
    if kind == "key" or (kind == "auto" and key.startswith("lin_api_")):
        return header("Authorization", key)
    return bearer(key)


def errors_of(answer: HttpAnswer) -> Sequence[Mapping[str, Any]]:
    """Return the GraphQL errors of an answer, none where it is no GraphQL answer."""
    try:
        errors = list_of(mapping_of(answer.json()).get("errors"))
    except NoJson:
        return ()
    return [error for error in map(mapping_of, errors) if error]


def nodes_of(connection: object) -> list[Mapping[str, Any]]:
    """Return the nodes of a list. Raises TrackerError for what is none: it is no empty list."""
    nodes = mapping_of(connection).get("nodes")
    if not isinstance(nodes, list) or not all(isinstance(node, dict) for node in nodes):
        what = "Linear answered something that is no list of objects where one has to be"
        raise TrackerError(TrackerErrorKind.UNAVAILABLE, what)
    return nodes


def error_text(answer: HttpAnswer) -> str:
    """Return what an answer says about its errors, for people."""
    texts = [_words(error) for error in errors_of(answer)]
    return "; ".join(dict.fromkeys(texts)) if texts else answer.text()


def _words(error: Mapping[str, Any]) -> str:
    said = _extension(error, "userPresentableMessage")
    message = str(error.get("message") or "")
    return said if not message or said.startswith(message) else f"{message}: {said}".rstrip(": ")


def _extension(error: Mapping[str, Any], name: str) -> str:
    return str(mapping_of(error.get("extensions")).get(name) or "")


def _is_limit(answer: HttpAnswer) -> bool:
    return answer.status == 429 or any(
        _extension(error, "code") == "RATELIMITED" or _extension(error, "type") == "ratelimited"
        for error in errors_of(answer)
    )


PROVIDER = Provider(
    name="Linear",
    is_limit=_is_limit,
    error_text=error_text,
    budgets=[
        BudgetHeaders(
            name=name,
            limit=f"x-ratelimit-{name}-limit",
            remaining=f"x-ratelimit-{name}-remaining",
            reset=f"x-ratelimit-{name}-reset",
            unit=Reset.EPOCH_MILLISECONDS,
        )
        for name in ("requests", "complexity")
    ],
)


class LinearApi:
    """Asks Linear; ``page_size`` is the number of issues of a page, less once that was too much."""

    def __init__(self, client: HttpClient, page_size: int) -> None:
        self.client = client
        self.page_size = page_size

    async def ask(
        self, document: str, what: str, use: Use = Use.READ, **variables: Json
    ) -> Mapping[str, Any]:
        """Return the ``data`` of one document. Raises TrackerError; LostAnswer for a change that
        may have been made, NotTaken for one that has not."""
        request = _request(document, what, use, variables)
        return self._data(request, await self.client.ask(request))

    async def pages(
        self,
        document: str,
        what: str,
        take: Callable[[Mapping[str, Any]], Mapping[str, Json] | None],
        use: Use = Use.READ,
        **variables: Json,
    ) -> None:
        """Ask for page after page of ``first`` issues; ``take`` gets the data of one and returns
        the variables that the next one has, None at the end.

        Where a page is too complex ``take`` is called for the same page again, with fewer issues.
        """
        while True:
            variables["first"] = self.page_size
            current = _request(document, what, use, variables)

            def next_page(answer: HttpAnswer) -> HttpRequest | None:
                nonlocal current
                changes = take(self._data(current, answer))
                if changes is None:
                    return None
                variables.update(changes)
                current = _request(document, what, use, variables)
                return current

            try:
                return await walk(self.client, current, next_page)
            except TooComplex:
                if self.page_size <= SMALLEST_PAGE:
                    raise
                self.page_size = max(SMALLEST_PAGE, self.page_size // 2)

    def _data(self, request: HttpRequest, answer: HttpAnswer) -> Mapping[str, Any]:
        """Return the data of an answer that has no errors. Raises TrackerError."""
        if _is_limit(answer):
            raise self.client.limit_error(request, answer, error_text(answer))
        if errors := errors_of(answer):
            raise self._error(request, answer, errors)
        data = mapping_of(answer.json()).get("data") if answer.has_body else None
        if not answer.ok or not isinstance(data, dict):
            text = f"it answered {answer.status} without data"
            raise self._as(LostAnswer if request.is_change else TrackerError, request, text)
        return data

    def _error(
        self, request: HttpRequest, answer: HttpAnswer, errors: Sequence[Mapping[str, Any]]
    ) -> TrackerError:
        text, kinds = error_text(answer), set(map(_kind, errors))
        if not request.is_change and any(_TOO_COMPLEX in _words(e).lower() for e in errors):
            return self._as(TooComplex, request, text, TrackerErrorKind.INVALID)
        if len(kinds) > 1 or None in kinds:
            # Some of it may pass, or nobody knows: a change may have been made.
            return self._as(LostAnswer if request.is_change else TrackerError, request, text)
        (kind,) = kinds
        assert kind is not None
        return self._as(NotTaken if request.is_change else TrackerError, request, text, kind)

    def _as(
        self,
        error: type[TrackerError],
        request: HttpRequest,
        text: str,
        kind: TrackerErrorKind = TrackerErrorKind.UNAVAILABLE,
    ) -> TrackerError:
        return error(kind, str(self.client.error(kind, request, text)))


def _kind(error: Mapping[str, Any]) -> TrackerErrorKind | None:
    if str(error.get("message", "")).lower().startswith(_NOT_FOUND):
        return TrackerErrorKind.NOT_FOUND
    return ERROR_KINDS.get(_extension(error, "type")) or ERROR_KINDS.get(_extension(error, "code"))


def _request(document: str, what: str, use: Use, variables: Mapping[str, Json]) -> HttpRequest:
    return HttpRequest(
        method="POST",
        path="",
        body={"query": document, "variables": dict(variables)},
        what=what,
        use=use,
        wanted=_WITH_ERRORS,
    )
