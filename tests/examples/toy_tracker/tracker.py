"""The toy tracker over HTTP.

Rule 1: an issue's state is derived: a closed issue is in a terminal state, an open one in another;
a label names which, and without one it is the first.
Rule 2: an issue is changed only if nobody has changed it since it was read (``If-Match``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import httpx2
from msgspec.structs import replace

from sortie.model import (
    Comment,
    Issue,
    IssueId,
    TrackerError,
    TrackerErrorKind,
    same_state,
    state_key,
)
from sortie.model.checks import Check, CheckResult, passed
from sortie.trackers import IssuesRead, Tracker, TrackerStates

_KINDS: Mapping[int, TrackerErrorKind] = {
    401: TrackerErrorKind.CLOSED,
    403: TrackerErrorKind.PERMISSION,
    404: TrackerErrorKind.NOT_FOUND,
    412: TrackerErrorKind.CONFLICT,
    422: TrackerErrorKind.INVALID,
}
"""What refusals mean; any other passes, as far as one can know."""


class ToyTracker(Tracker):
    """Issues of one project."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        states: TrackerStates,
        progress: Callable[[], object],
        page_size: int,
    ) -> None:
        self._client = client
        self._states = states
        self._progress = progress
        self._page_size = page_size
        self._version = 0
        self._uncertain: set[str | None] = set()  # keys of comments that may have been made

    def configure(self, states: TrackerStates) -> None:
        """Tell states apart by these names from now on."""
        self._states = states

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states, without comments."""
        wanted = {state_key(state) for state in states}
        found: list[Issue] = []
        page: int | None = 1 if wanted else None
        while page is not None:
            listed = await self._ask("GET", "issues", page=page, size=self._page_size)
            self._progress()
            issues = (self._issue_or_error(item) for item in listed["issues"])
            found += [i for i in issues if isinstance(i, Issue) and state_key(i.state) in wanted]
            page = listed["next"]
        return found

    async def fetch_by_ids(self, ids: Collection[IssueId]) -> IssuesRead:
        """Read each of these issues."""
        issues: list[Issue] = []
        failed: dict[IssueId, TrackerError] = {}
        for issue_id in dict.fromkeys(ids):
            found = await self._read(issue_id)
            self._progress()
            if isinstance(found, TrackerError):
                failed[issue_id] = found
            elif found is not None:
                issues.append(found)
        return IssuesRead(issues=tuple(issues), failed=failed)

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that key or id."""
        found = await self._read(name)
        if isinstance(found, TrackerError):
            raise found
        return found

    async def transition(self, issue: Issue, state: str) -> Issue:
        """Open or close an issue and change the label that names its state."""
        item = await self._ask("GET", "issue", name=issue.id)
        present = self._issue_or_error(item)
        if isinstance(present, TrackerError):
            raise present
        if not same_state(present.state, issue.state):
            raise TrackerError(
                TrackerErrorKind.CONFLICT,
                f"{issue.identifier} is in {present.state}, no longer in {issue.state}",
            )
        name = next((n for n in self._states.named if same_state(n, state)), None)
        if name is None:
            raise TrackerError(
                TrackerErrorKind.INVALID, f"cannot move {issue.identifier} to {state!r}: no state"
            )
        change = {"labels": [*present.labels, name], "open": name not in self._states.terminal}
        version = {"If-Match": str(item["version"])}
        changed = await self._ask("PATCH", "issue", change, version, name=issue.id)
        return replace(
            present,
            state=name,
            updated_at=_time(changed["updated_at"]),
            comments=await self._comments(issue.id),
        )

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment. It keeps no marks: one that may be there is, where a comment says it."""
        may_be_there = again or (key is not None and key in self._uncertain)
        if may_be_there and body in [said.body for said in await self._comments(issue.id)]:
            return
        self._uncertain.add(key)
        await self._ask("POST", "comments", {"body": body}, name=issue.id)
        self._uncertain.discard(key)

    async def changed(self) -> None:
        """Wait for a version of the project that is newer than the last one known."""
        while True:
            version = (await self._ask("GET", "changes", since=self._version))["version"]
            if version != self._version:
                self._version = version
                return

    def checks(self) -> Sequence[Check]:
        """Ask for a page of one issue: the address, the key and the project are right then."""

        async def read() -> CheckResult:
            await self._ask("GET", "issues", page=1, size=1)
            return passed(f"issues can be read from {self._client.base_url}")

        remedy = "look at tracker.endpoint, tracker.project and tracker.api_key"
        return (Check(name="read", ask=read, remedy=remedy),)

    async def _read(self, name: str) -> Issue | TrackerError | None:
        """Return an issue with its comments; None where there is none."""
        try:
            item = await self._ask("GET", "issue", name=name)
            issue = self._issue_or_error(item)
            if isinstance(issue, TrackerError):
                return issue
            return replace(issue, comments=await self._comments(issue.id))
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.NOT_FOUND:
                return None
            raise

    async def _comments(self, name: str) -> tuple[Comment, ...]:
        listed = await self._ask("GET", "comments", name=name)
        return tuple(
            Comment(
                author=c["author"],
                body=c["body"],
                created_at=_time(c["created_at"]),
                author_id=c["author"],
            )
            for c in listed["comments"]
        )

    def _issue_or_error(self, item: Mapping[str, Any]) -> Issue | TrackerError:
        """Return an item as an issue, or what is wrong with it."""
        if not isinstance(item.get("title"), str):
            what = f"issue {item.get('id')} has no title; give it one"
            return TrackerError(TrackerErrorKind.INVALID, what)
        names = {state_key(name) for name in self._states.named}
        return Issue(
            id=IssueId(item["id"]),
            identifier=item["key"],
            title=item["title"],
            state=self._state_of(item),
            description=item["body"],
            url=item["url"],
            author=item["author"],
            author_id=item["author"],
            assignee=item["assignee"],
            labels=tuple(label for label in item["labels"] if state_key(label) not in names),
            created_at=_time(item["created_at"]),
            updated_at=_time(item["updated_at"]),
        )

    def _state_of(self, item: Mapping[str, Any]) -> str:
        states, labels = self._states, {state_key(label) for label in item["labels"]}
        others = [name for name in states.named if name not in states.terminal]
        possible = others if item["open"] else list(states.terminal)
        labelled = (name for name in possible if state_key(name) in labels)
        return next(labelled, possible[0] if possible else "open" if item["open"] else "closed")

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        /,
        **params: str | int,
    ) -> Any:
        """Make one HTTP request and return its JSON. Raises TrackerError."""
        attempt = f"the toy tracker was asked for {path}"
        try:
            answer = await self._client.request(
                method, path, params=params, json=body, headers=headers
            )
            if answer.is_success:
                return answer.json()
        except httpx2.HTTPError as exc:
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE, f"{attempt}, and could not be reached: {exc}"
            ) from exc
        except ValueError as exc:
            raise TrackerError(
                TrackerErrorKind.UNAVAILABLE, f"{attempt}, and answered no JSON"
            ) from exc
        wait = answer.headers.get("Retry-After", "")
        raise TrackerError(
            _KINDS.get(answer.status_code, TrackerErrorKind.UNAVAILABLE),
            f"{attempt}, and answered {answer.status_code} {answer.reason_phrase}",
            retry_after=float(wait) if wait.isdecimal() else None,
        )


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
