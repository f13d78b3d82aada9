"""A forge in memory that misbehaves: it shows old states, loses answers and is in trouble."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal
from zlib import crc32

from msgspec.structs import replace

from sortie.forges import NOTHING_CHANGED
from sortie.model import LostAnswer, PullRequest, TrackerError, TrackerErrorKind
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    MergeMethod,
    Note,
    PullRequestState,
    Review,
    ReviewThread,
)
from sortie.model.webhooks import Part

CHECKS = ("build", "test")
WRITERS = ("ann", "bob")


@dataclass
class Commit:
    """A head of a branch: which checks fail at it, and which of the base it has."""

    name: str
    made_at: float
    fails: frozenset[str]
    base: int
    conflicts: bool = False


@dataclass
class Request:
    """A pull request as it really is."""

    number: int
    branch: str
    commits: list[Commit]
    state: Literal["open", "merged", "closed"] = "open"
    reviews: dict[str, Review] = field(default_factory=dict)
    threads: list[ReviewThread] = field(default_factory=list)
    comments: list[Note] = field(default_factory=list)
    labels: set[str] = field(default_factory=set)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    branch_deleted: bool = False
    queued: bool = False
    queued_after: int = 0  # so many merges of Sortie's or the forge's own

    @property
    def head(self) -> Commit:
        """Its newest commit."""
        return self.commits[-1]

    @property
    def id(self) -> str:
        """The forge's name of it."""
        return f"PR_{self.number}"


class Fault(Exception):
    """A promise was broken at the forge."""


class FakeForge:
    """As much of a Forge as is asked until a merge.

    ``trouble`` is how often a request goes wrong; ``clock`` returns seconds."""

    def __init__(self, luck: random.Random, clock: Callable[[], float]) -> None:
        self.luck = luck
        self.clock = clock
        self.trouble = 0.0
        self.base = 0
        self.requests: dict[str, Request] = {}
        self.keys: Counter[str] = Counter()
        self.merged_by_us: list[str] = []
        self.looks = 0
        self.automatic = luck.random() < 0.3
        self.has_queue = self.automatic and luck.random() < 0.3
        self.merges = 0
        self._shown: dict[str, list[tuple[float, PullRequestState]]] = {}
        self._notes = 0

    # What people and machines do.

    def note_id(self) -> str:
        """Return the id of a new note."""
        self._notes += 1
        return f"n{self._notes}"

    def push(self, request: Request, *, fails: frozenset[str], base: int | None = None) -> Commit:
        """Have a new head."""
        known = request.head if request.commits else None
        commit = Commit(
            name=f"c{request.number}.{len(request.commits) + 1}",
            made_at=self.clock(),
            fails=fails,
            base=base if base is not None else (known.base if known else self.base),
        )
        request.commits.append(commit)
        if request.queued:
            request.queued = False  # as GitHub drops auto-merge
        return commit

    def move_base(self) -> None:
        """Have somebody push to the base: what is open may conflict with it now."""
        self.base += 1
        for request in self.requests.values():
            if request.state == "open" and self.luck.random() < 0.2:
                request.head.conflicts = True

    # What is true.

    def truth(self, request: Request) -> PullRequestState:
        """Return how a pull request stands."""
        head = request.head
        return PullRequestState(
            pull_request=self.shown(request),
            conflicts=None if self.luck.random() < 0.1 else head.conflicts,
            checks=tuple(self.checks_of(request)),
            reviews=tuple(request.reviews.values()),
            threads=tuple(request.threads),
            comments=tuple(request.comments),
            labels=tuple(sorted(request.labels)),
            automatic=self.automatic,
            queued=request.queued,
            has_queue=self.has_queue,
        )

    def shown(self, request: Request) -> PullRequest:
        """Return a pull request as the port has it."""
        return PullRequest(
            id=request.id,
            number=request.number,
            url=f"https://forge.example/pulls/{request.number}",
            state=request.state,
            branch=request.branch,
            base="main",
            title="A title",
            head=request.head.name,
        )

    def checks_of(self, request: Request) -> list[HeadCheck]:
        """Return the checks of the head: none at first, then pending, then done."""
        head, age = request.head, self.clock() - request.head.made_at
        found: list[HeadCheck] = []
        for place, name in enumerate(CHECKS):
            if age < 20 + 30 * place:
                if age > 5:
                    found.append(
                        HeadCheck(
                            id=f"expected:{name}",
                            name=name,
                            state=CheckState.PENDING,
                            required=True,
                        )
                    )
                continue
            attempt = request.attempts[head.name, name]
            state = CheckState.PENDING if age < 200 + 100 * place else CheckState.SUCCESS
            if state is CheckState.SUCCESS and name in head.fails:
                flaky = attempt and crc32(f"{head.name} {name}".encode()) % 3 == 0
                state = CheckState.SUCCESS if flaky else CheckState.FAILURE
            found.append(
                HeadCheck(id=f"{head.name}:{name}:{attempt}", name=name, state=state, required=True)
            )
        optional = CheckState.FAILURE if request.number % 2 else CheckState.NEUTRAL
        found.append(HeadCheck(id=f"{head.name}:lint", name="lint", state=optional, required=False))
        return found

    def is_green(self, request: Request) -> bool:
        """Tell whether all required checks have succeeded at the head."""
        states = {c.name: c.state for c in self.checks_of(request)}
        return all(states.get(name) is CheckState.SUCCESS for name in CHECKS)

    # The port.

    def _go_wrong(self, *, change: bool, done: bool) -> None:
        if self.luck.random() >= self.trouble:
            return
        kind = self.luck.choice(("unavailable", "limit", "lost"))
        if kind == "lost" and change and done:
            raise LostAnswer(TrackerErrorKind.UNAVAILABLE, "the answer was lost")
        if not done:
            pause = 30.0 if kind == "limit" else None
            raise TrackerError(TrackerErrorKind.UNAVAILABLE, "503", retry_after=pause)

    async def find(self, branch: str) -> PullRequest | None:
        """See Forge."""
        open_ones = (r for r in self.requests.values() if r.branch == branch and r.state == "open")
        return next(map(self.shown, open_ones), None)

    async def look(
        self,
        pull_requests: Sequence[PullRequest],
        *,
        afresh: bool = False,
        changed: Mapping[str, Part] = NOTHING_CHANGED,
        told: bool = False,
    ) -> Mapping[str, PullRequestState]:
        """See Forge; what is shown may be a minute old unless ``afresh``, or known to have
        ``changed``."""
        del told
        self.looks += 1
        self._go_wrong(change=False, done=False)
        found = {}
        for asked in pull_requests:
            if (request := self.requests.get(asked.id)) is None:
                continue
            now, state = self.clock(), self.truth(request)
            shown = self._shown.setdefault(asked.id, [])
            shown.append((now, state))
            is_now = afresh or asked.id in changed
            if not is_now and self.trouble and self.luck.random() < 0.2:
                state = self.luck.choice([s for at, s in shown if at > now - 60])
            found[asked.id] = state
        return found

    def _changes(self, asked: PullRequest) -> Request:
        self._go_wrong(change=True, done=False)
        if (request := self.requests.get(asked.id)) is None:
            raise TrackerError(TrackerErrorKind.NOT_FOUND, "404")
        return request

    def _once(self, key: str) -> bool:
        self.keys[key] += 1
        return self.keys[key] == 1

    async def comment(self, pull_request: PullRequest, body: str, key: str) -> None:
        """See Forge."""
        request = self._changes(pull_request)
        if self._once(key):
            text = f"{body}\n\n<!-- sortie:{key.replace(' ', '-')} -->"
            request.comments.append(Note(id=self.note_id(), author="sortie", body=text))
        self._go_wrong(change=True, done=True)

    async def reply(
        self, pull_request: PullRequest, thread: ReviewThread, body: str, key: str
    ) -> None:
        """See Forge."""
        request = self._changes(pull_request)
        places = [i for i, known in enumerate(request.threads) if known.id == thread.id]
        if not places:
            raise TrackerError(TrackerErrorKind.NOT_FOUND, "404")
        if self._once(key):
            text = f"{body}\n\n<!-- sortie:{key.replace(' ', '-')} -->"
            known = request.threads[places[0]]
            note = Note(id=self.note_id(), author="sortie", body=text)
            request.threads[places[0]] = replace(known, notes=(*known.notes, note))
        self._go_wrong(change=True, done=True)

    async def acknowledge(self, pull_request: PullRequest, note: Note) -> None:
        """See Forge."""
        self._changes(pull_request)
        self._go_wrong(change=True, done=True)

    async def label(
        self, pull_request: PullRequest, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """See Forge."""
        request = self._changes(pull_request)
        request.labels |= set(add)
        request.labels -= set(remove)
        self._go_wrong(change=True, done=True)

    async def may_write(self, user: str) -> bool:
        """See Forge."""
        self._go_wrong(change=False, done=False)
        return user in WRITERS

    async def rerun(self, check: HeadCheck) -> bool:
        """See Forge."""
        self._go_wrong(change=True, done=False)
        head, name, _ = check.id.split(":")
        for request in self.requests.values():
            if request.head.name == head:
                request.attempts[head, name] += 1
        return True

    async def bring_up_to_date(self, pull_request: PullRequest, head: str) -> bool:
        """See Forge."""
        request = self._changes(pull_request)
        if request.head.name != head:
            raise TrackerError(TrackerErrorKind.CONFLICT, "head moved")
        if request.head.base == self.base:
            return False
        if request.head.conflicts:
            raise TrackerError(TrackerErrorKind.INVALID, "conflicts")
        fails = frozenset({"test"}) if self.luck.random() < 0.1 else request.head.fails
        self.push(request, fails=fails, base=self.base)
        self._go_wrong(change=True, done=True)
        return True

    def require_mergeable(self, request: Request, head: str) -> None:
        """Fail where what Sortie merges must not be merged."""
        if request.head.name != head:
            raise TrackerError(TrackerErrorKind.CONFLICT, "head moved")
        if not self.is_green(request):
            raise Fault(f"{request.id} is merged at {head} without its checks")
        opinions = {
            r.author: r.state for r in request.reviews.values() if r.author in WRITERS and not r.bot
        }
        if "approved" not in opinions.values() or "changes_requested" in opinions.values():
            raise Fault(f"{request.id} is merged without approval: {opinions}")

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """See Forge."""
        request = self._changes(pull_request)
        if request.state != "open" or request.head.conflicts:
            raise TrackerError(TrackerErrorKind.INVALID, "405")
        self.require_mergeable(request, head)
        if request.head.base != self.base:
            raise Fault(f"{request.id} is merged beside what was merged before it")
        request.state = "merged"
        self.merged_by_us.append(request.id)
        self.merges += 1
        self.move_base()
        self._go_wrong(change=True, done=True)

    async def merge_when_ready(
        self, pull_request: PullRequest, head: str, method: MergeMethod
    ) -> None:
        """See Forge."""
        request = self._changes(pull_request)
        if request.head.name != head:
            raise TrackerError(TrackerErrorKind.CONFLICT, "head moved")
        if self.luck.random() < 0.2:
            raise TrackerError(TrackerErrorKind.INVALID, "clean status")
        if not self.has_queue and request.head.base != self.base:
            raise Fault(f"{request.id} is to be merged without what is in its base")
        request.queued, request.queued_after = True, self.merges
        self._go_wrong(change=True, done=True)

    def merge_queued(self) -> None:
        """Merge what was told to be merged once it is ready."""
        for request in self.requests.values():
            ready = request.queued and request.state == "open" and self.is_green(request)
            if ready and not request.head.conflicts:
                if not self.has_queue and request.queued_after != self.merges:
                    raise Fault(f"{request.id} is merged beside what was merged before it")
                request.state = "merged"
                self.merges += 1
                self.move_base()

    async def cancel_merge(self, pull_request: PullRequest) -> None:
        """See Forge."""
        self._changes(pull_request).queued = False
        self._go_wrong(change=True, done=True)

    async def delete_branch(self, branch: str) -> None:
        """See Forge."""
        self._go_wrong(change=True, done=False)
        for request in self.requests.values():
            if request.branch == branch:
                request.branch_deleted = True
