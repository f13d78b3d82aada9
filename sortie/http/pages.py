"""Lists in pages: the server says which page is next, and what it says is not believed for ever."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from sortie.http.answers import HttpAnswer
from sortie.http.client import HttpClient
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind

PAGES = 2000
"""Pages of one list; a list with more is an error, as a shorter one would hide issues."""

_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^\s",;]*))*)')
_NEXT = re.compile(r';\s*rel\s*=\s*"?[^";]*\bnext\b', re.IGNORECASE)


async def walk(
    client: HttpClient,
    first: HttpRequest,
    take: Callable[[HttpAnswer], HttpRequest | None],
    limit: int = PAGES,
) -> None:
    """Ask for page after page; ``take`` reads one and returns the question for the next, or None.

    Raises TrackerError where a page fails, comes twice, or there is no end.
    """
    asked: set[str] = set()
    request: HttpRequest | None = first
    while request is not None:
        question = json.dumps([request.path, list(request.params), request.body])
        if question in asked:
            raise _endless(request, "the same page comes twice")
        if len(asked) >= limit:
            raise _endless(request, f"the list has more than {limit} pages")
        asked.add(question)
        request = take(await client.ask(request))


def next_link(client: HttpClient, request: HttpRequest, answer: HttpAnswer) -> HttpRequest | None:
    """Return the question for the page that the ``Link`` header calls ``next``, or None."""
    for found in _LINK.finditer(answer.headers.get("link", "")):
        if _NEXT.search(found[2]):
            path = client.endpoint.path_of(found[1], request)
            if path is None:
                raise _endless(request, "the address of its next page makes no sense")
            return request.page(path, ())
    return None


def _endless(request: HttpRequest, why: str) -> TrackerError:
    return TrackerError(TrackerErrorKind.UNAVAILABLE, f"{request.what}: {why}")
