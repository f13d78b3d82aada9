"""What the forges have in common: requests below one repository, comments that are made once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import trio

from sortie.forges import Forge
from sortie.forges.check_logs import LOG_BYTES
from sortie.http.answers import HttpAnswer
from sortie.http.budget import Use
from sortie.http.checks import budget_check, clock_check
from sortie.http.client import HttpClient, segment
from sortie.http.comments import OnceOnly, is_marked, marked
from sortie.http.json_values import mapping_of, text_of, word_of
from sortie.http.pages import next_link, walk
from sortie.http.permissions import may_push
from sortie.http.requests import HttpRequest, error_text_in_json
from sortie.model import PullRequest, RateBudget, TrackerError, TrackerErrorKind
from sortie.model.checks import Check, CheckResult, passed
from sortie.model.pull_requests import Note
from sortie.model.trust import login_key
from sortie.telemetry.log.structlog_alone import structlog

log = structlog.get_logger()

PERMISSION_LIFE = 300.0
"""Seconds for which it is remembered who may write."""

_MOST_PEOPLE = 1000

_REACH_REMEDY = (
    "see whether the forge is up; look at repository.url and forge.endpoint, and whether"
    " repository.credential may see the repository"
)

REVIEW_NOTE = "review:"
"""Before the id of a note that is the text of a review, to which there are no reactions."""

DIFF_NOTE = "diff:"
"""Before the id of a note in a review thread, which GitHub counts apart from comments."""

_MISSING = frozenset({404})
_NO_LOG = frozenset({403, 404, 410})


class HttpForge(Forge):
    """A repository below ``root``, and how it is asked."""

    page: tuple[str, int] = ("per_page", 100)

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        self.client = client
        self.root = root
        self.name = name
        self._once = OnceOnly()
        self._writers: dict[str, tuple[float, bool]] = {}
        self._bases: set[str] = set()

    async def ask(self, path: str, what: str, **more: Any) -> HttpAnswer:
        """Ask about the repository."""
        return await self.client.ask(HttpRequest(path=f"{self.root}{path}", what=what, **more))

    async def write(
        self, method: str, path: str, what: str, body: Any = None, **more: Any
    ) -> HttpAnswer:
        """Change something."""
        return await self.ask(path, what, method=method, body=body, use=Use.WRITE, **more)

    async def listed(
        self, path: str, what: str, params: Iterable[tuple[str, str | int]] = ()
    ) -> list[Any]:
        """Return all items of a list in pages. Raises TrackerError where there is no such list:
        no checks, or no reviews, would look as if all were well."""
        request = HttpRequest(
            path=f"{self.root}{path}", what=what, params=[*params, self.page], list_at=()
        )
        found: list[Any] = []

        def take(answer: HttpAnswer) -> HttpRequest | None:
            found.extend(answer.json())
            return next_link(self.client, request, answer)

        await walk(self.client, request, take)
        return found

    async def require_visible(self) -> None:
        """Raise TrackerError where the repository cannot be seen at all: a forge says of what is in
        it then that it is not there."""
        await self.ask("", f"cannot see the repository {self.name}", follow=True)

    async def comment_once(self, body: str, key: str, path: str, what: str) -> None:
        """Comment at a path, unless a comment with this key is there."""

        async def post() -> None:
            await self.write("POST", path, what, {"body": marked(body, key)})

        async def is_there() -> bool:
            return has_key(await self.listed(path, what), key)

        await self.once(key, post, is_there)

    async def once(
        self,
        key: str,
        post: Callable[[], Awaitable[object]],
        is_there: Callable[[], Awaitable[bool]],
    ) -> None:
        """Post something unless it is there, from this life or an earlier one."""
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

    def seen(self, pull_request: PullRequest) -> PullRequest:
        """Return a pull request, having noted its base, which is never deleted."""
        self._bases.add(pull_request.base)
        return pull_request

    async def may_write(self, user: str) -> bool:
        """Tell whether somebody may push, as it was at most PERMISSION_LIFE seconds ago."""
        now, name = trio.current_time(), login_key(user)
        if not name:
            return False
        known = self._writers.get(name)
        if known is None or now >= known[0]:
            if len(self._writers) >= _MOST_PEOPLE:
                self._writers.clear()
            known = now + PERMISSION_LIFE, await self.read_permission(user.strip())
            self._writers[name] = known
        return known[1]

    async def known_labels(self, names: Sequence[str], what: str) -> list[str]:
        """Return those of some labels that there are, and log the others."""
        answers = {
            name: await self.ask(f"/labels/{segment(name)}", what, wanted=_MISSING)
            for name in names
        }
        if absent := [name for name, answer in answers.items() if not answer.ok]:
            error = "there is no such label"
            log.warning("forge.left_out", what="labels", names=", ".join(absent), error=error)
        return [name for name in answers if name not in absent]

    async def read_permission(self, user: str) -> bool:
        """Ask whether somebody may push, by their own right or a team's; False for who is unknown.

        GitHub and Gitea have the same address for it. Raises TrackerError (PERMISSION) where the
        account of the token may not ask.
        """
        return await may_push(self.client, self.root, user)

    async def acknowledge(self, pull_request: PullRequest, note: Note) -> None:
        """Put eyes on a comment; GitHub and Gitea take a second one for the first."""
        if note.id.startswith(REVIEW_NOTE):
            return  # the text of a review takes no reactions
        kind = "pulls" if note.id.startswith(DIFF_NOTE) else "issues"
        what = f"cannot react to a comment of pull request {pull_request.number}"
        path = f"/{kind}/comments/{segment(note.id.removeprefix(DIFF_NOTE))}/reactions"
        await self.write("POST", path, what, {"content": "eyes"}, wanted=_MISSING)

    async def require_no_base(self, branch: str) -> None:
        """Raise TrackerError (INVALID) for a branch into which others are merged."""
        what = f"cannot delete the branch {branch}"
        default = word_of(mapping_of((await self.ask("", what)).json()).get("default_branch"))
        if not branch.strip() or branch in self._bases or branch == default:
            raise invalid(f"{what}: it is a base of {self.name}")

    async def log_at(self, path: str, what: str) -> bytes:
        """Return the end of a log, b"" where there is none."""
        question = self.ask(path, what, tail=LOG_BYTES, follow=True, wanted=_NO_LOG)
        answer = self.permitted(await question, what)
        return answer.content if answer.ok else b""

    def permitted(self, answer: HttpAnswer, what: str) -> HttpAnswer:
        """Return an answer. Raises TrackerError (PERMISSION) for a refusal that is about one thing,
        and tells nothing about the credential in general."""
        if answer.status == 403:
            raise self.refused(TrackerErrorKind.PERMISSION, what, answer)
        return answer

    def refused(self, kind: TrackerErrorKind, what: str, answer: HttpAnswer) -> TrackerError:
        """Return an answer that was wanted, and is a refusal, as an error."""
        request = HttpRequest(path=self.root, what=what)
        return self.client.error(kind, request, error_text_in_json(answer))

    def budgets(self) -> Sequence[RateBudget]:
        """Return what the last answers said of limits."""
        return self.client.budgets()

    def checks(self) -> Sequence[Check]:
        """Ask whether the repository can be seen, then clock and limits."""

        async def reach() -> CheckResult:
            await self.require_visible()
            return passed(f"{self.client.provider} shows {self.name}")

        return (
            Check(name="reach", ask=reach, remedy=_REACH_REMEDY),
            clock_check(self.client),
            budget_check(self.client),
        )


def invalid(what: str) -> TrackerError:
    """Return the error for settings that cannot be used."""
    return TrackerError(TrackerErrorKind.INVALID, what)


def conflict(what: str) -> TrackerError:
    """Return the error for what is another by now."""
    return TrackerError(TrackerErrorKind.CONFLICT, what)


def has_key(items: Iterable[Any], key: str) -> bool:
    """Tell whether one of the comments is marked with a key."""
    return any(is_marked(text_of(item.get("body")) or "", key) for item in items)


def missing(wanted: Iterable[str], present: Iterable[str]) -> list[str]:
    """Return the names that are wanted and not there, whatever their case."""
    known = {name.casefold() for name in present}
    return [name for name in wanted if name.casefold() not in known]


def names_in(items: object, key: str) -> list[str]:
    """Return the names of a list of objects."""
    found = items if isinstance(items, list) else []
    return [str(item[key]) for item in found if isinstance(item, Mapping) and key in item]
