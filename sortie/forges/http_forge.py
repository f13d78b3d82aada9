"""What the forges have in common: requests below one repository, comments that are made once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import trio

from sortie.forges import Forge, PullRequestState
from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient
from sortie.http.comments import OnceOnly, is_marked, marked
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import PullRequest, RateBudget, TrackerError, TrackerErrorKind
from sortie.model.checks import Check, CheckResult, passed
from sortie.telemetry.log.structlog_alone import structlog

log = structlog.get_logger()

_MISSING = frozenset({404})


class HttpForge(Forge):
    """A repository below ``root``, and how it is asked."""

    page: tuple[str, int] = ("per_page", 100)

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        self.client = client
        self.root = root
        self.name = name
        self._once = OnceOnly()

    async def ask(self, path: str, what: str, **more: Any) -> HttpAnswer:
        """Ask about the repository."""
        return await self.client.ask(HttpRequest(path=f"{self.root}{path}", what=what, **more))

    async def write(
        self, method: str, path: str, what: str, body: Any = None, **more: Any
    ) -> HttpAnswer:
        """Change something."""
        return await self.ask(path, what, method=method, body=body, use=Use.WRITE, **more)

    async def listed(
        self,
        path: str,
        what: str,
        params: Iterable[tuple[str, str | int]] = (),
        list_at: tuple[str, ...] = (),
    ) -> list[Any]:
        """Return all items of a list in pages, none where there is no such address."""
        request = HttpRequest(
            path=f"{self.root}{path}",
            what=what,
            params=[*params, self.page],
            list_at=list_at,
            wanted=_MISSING,
        )
        found: list[Any] = []

        def take(answer: HttpAnswer) -> HttpRequest | None:
            if not answer.ok:
                return None
            items = answer.json()
            for key in list_at:
                items = items[key]
            found.extend(items)
            return next_link(self.client, request, answer)

        await walk(self.client, request, take)
        return found

    async def comment_once(
        self, body: str, key: str, path: str, what: str, text: Callable[[Any], str]
    ) -> None:
        """Comment at a path, unless a comment with this key is there."""

        async def post() -> None:
            await self.write("POST", path, what, {"body": marked(body, key)})

        async def is_there() -> bool:
            return any(is_marked(text(one), key) for one in await self.listed(path, what))

        await self._once.make(key, post, is_there, tried=True)

    async def as_far_as_it_goes(
        self, what: str, names: Sequence[str], change: Callable[[], Awaitable[object]]
    ) -> None:
        """Make a change that a pull request can do without, and log where it is refused."""
        if not names:
            return
        try:
            await change()
        except TrackerError as exc:
            if exc.kind not in (TrackerErrorKind.INVALID, TrackerErrorKind.NOT_FOUND):
                raise
            log.warning("forge.left_out", what=what, names=", ".join(names), error=str(exc))

    async def read(self, pull_request: PullRequest) -> PullRequestState:
        """Return how a pull request stands."""
        raise NotImplementedError

    def budgets(self) -> Sequence[RateBudget]:
        """Return what the last answers said of limits."""
        return self.client.budgets()

    def checks(self) -> Sequence[Check]:
        """Ask whether the repository can be seen, then clock and limits."""

        async def reach() -> CheckResult:
            await trio.lowlevel.checkpoint()
            await self.ask("", f"cannot see the repository {self.name}")
            return passed(f"{self.client.provider} shows {self.name}")

        return (
            Check(name="reach", ask=reach),
            clock_check(self.client),
            budget_check(self.client),
        )


def invalid(what: str) -> TrackerError:
    """Return the error for settings that cannot be used."""
    return TrackerError(TrackerErrorKind.INVALID, what)


def conflict(what: str) -> TrackerError:
    """Return the error for what is another by now."""
    return TrackerError(TrackerErrorKind.CONFLICT, what)


def missing(wanted: Iterable[str], present: Iterable[str]) -> list[str]:
    """Return the names that are wanted and not there, whatever their case."""
    known = {name.casefold() for name in present}
    return [name for name in wanted if name.casefold() not in known]


def names_in(items: object, key: str) -> list[str]:
    """Return the names of a list of objects."""
    found = items if isinstance(items, list) else []
    return [str(item[key]) for item in found if isinstance(item, Mapping) and key in item]
