"""How pull requests stand: the list of open ones, details of those that it shows changed.

Rule: that Gitea cannot merge one is believed when it is told twice, for the same commits, some
seconds apart: it says the same while it computes whether there are conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec.structs import replace

from sortie.forges import NOTHING_CHANGED
from sortie.forges.gitea.state import (
    checks_of,
    commented_mark,
    events_of,
    labels_of,
    mark_of,
    pull_request_of,
    reviews_of,
    talk_of,
    threads_of,
)
from sortie.forges.http_forge import REVIEW_NOTE, HttpForge
from sortie.forges.remembered import LIFE, Compared, RememberedStates
from sortie.http.answers import HttpAnswer
from sortie.http.at_once import each
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, number_of
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import PullRequest
from sortie.model.pull_requests import HeadCheck, Note, PullRequestState, Review, ReviewThread
from sortie.model.webhooks import Part

COMPUTING = 3.0
"""Seconds for which it is not believed that one cannot be merged."""

_PROTECTION_LIFE = 300.0
"""Seconds for which it is believed, where everything is to be read, what a base demands."""

_MISSING = frozenset({404})


class GiteaLooks(HttpForge):
    """Looks at the pull requests of one repository."""

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        super().__init__(client, root, name)
        self.known = RememberedStates()
        self._unmergeable: dict[str, tuple[object, float]] = {}
        self._asking_what_is_required = trio.Lock()
        self._required: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def look(
        self,
        pull_requests: Sequence[PullRequest],
        *,
        afresh: bool = False,
        changed: Mapping[str, Part] = NOTHING_CHANGED,
        told: bool = False,
    ) -> Mapping[str, PullRequestState]:
        """Return how pull requests stand; what is gone is left out."""
        few = len(pull_requests) == 1  # one request, and none for the list
        listed = {} if few else await self._listed(pull_requests)
        found: dict[str, PullRequestState] = {}

        async def read(pull_request: PullRequest) -> None:
            part = "all" if afresh else changed.get(pull_request.id)
            if few and part == "talk":
                commented = await self._commented(pull_request, told)
                if commented is not None:
                    found[pull_request.id] = commented
                    return
            item = listed.get(pull_request.id)
            if item is None:
                item = await self._item(pull_request)
            if item is None:
                self.known.forget(pull_request.id)
                self._unmergeable.pop(pull_request.id, None)
            else:
                found[pull_request.id] = await self._state(item, part, told)

        await each(read, pull_requests)
        if any(one.id not in found for one in pull_requests):
            await self.require_visible()
        return {one.id: found[one.id] for one in pull_requests if one.id in found}

    async def _listed(self, pull_requests: Sequence[PullRequest]) -> dict[str, Any]:
        """Return the open ones by their ids, from page to page until all that are wanted came."""
        wanted = {one.id for one in pull_requests if one.state == "open"}
        found: dict[str, Any] = {}
        if not wanted:
            return found
        request = HttpRequest(
            path=f"{self.root}/pulls",
            what=f"cannot list the pull requests of {self.name}",
            params=[("state", "open"), ("sort", "recentupdate"), self.page],
            list_at=(),
        )

        def take(answer: HttpAnswer) -> HttpRequest | None:
            found.update((str(item["id"]), item) for item in answer.json())
            return next_link(self.client, request, answer) if wanted - found.keys() else None

        await walk(self.client, request, take)
        return found

    async def _item(self, pull_request: PullRequest) -> Any | None:
        """Return one that is not among the open ones; None where it is gone."""
        what = f"cannot read pull request {pull_request.number}"
        answer = await self.ask(f"/pulls/{pull_request.number}", what, wanted=_MISSING)
        item = answer.json() if answer.ok else None
        return item if item is not None and str(item["id"]) == pull_request.id else None

    async def _commented(self, pull_request: PullRequest, told: bool) -> PullRequestState | None:
        """Return how one stands, by its timeline alone where that shows nothing but comments; None
        where there is, or may be, more to read."""
        known, now = self.known.get(pull_request.id), trio.current_time()
        if known is None or known.state.conflicts is None or known.state.threads:
            return None
        request = known.state.pull_request
        compared = Compared(
            known=known,
            mark=known.mark,
            head=request.head,
            part=None,
            told=told,
            now=now,
            hour=_hour_of(request),
        )
        if compared.has_moved or request.state != "open":
            return None
        path = f"/issues/{request.number}/timeline"
        timeline = await self.listed(path, f"cannot read pull request {request.number}")
        if events_of(timeline) != known.events:
            return None
        comments, queued = talk_of(timeline)
        said = _said_in_reviews(known.state)
        state = replace(known.state, comments=(*comments, *said), queued=queued)
        noted = [item for item in timeline if item.get("type") == "comment"]
        compared = replace(compared, mark=commented_mark(known.mark, noted))
        times = {"checks_at": known.checks_at, "talk_at": known.talk_at}
        return self.known.put(compared, state, events=known.events, **times)

    async def _state(self, item: Any, part: Part | None, told: bool) -> PullRequestState:
        """Return how one stands, with what of it has to be read again."""
        request = self.seen(pull_request_of(item))
        known, now = self.known.get(request.id), trio.current_time()
        compared = Compared(
            known=known,
            mark=mark_of(item),
            head=request.head,
            part=part,
            told=told,
            now=now,
            hour=_hour_of(request),
        )
        state = replace(
            PullRequestState(pull_request=request) if known is None else known.state,
            pull_request=request,
            conflicts=self._conflicts(item, request, now),
            labels=labels_of(item),
            automatic=True,
        )
        checks, talk = compared.checks_known, compared.talk_known
        if checks is not None and talk is not None:
            return state
        if checks is None:
            state = replace(state, checks=await self._checks(request, part, now))
        checks_at = now if checks is None else checks.checks_at
        if talk is None:
            return await self._with_talk(state, compared, checks_at)
        times = {"checks_at": checks_at, "talk_at": talk.talk_at}
        return self.known.put(compared, state, events=talk.events, **times)

    async def _checks(
        self, pull_request: PullRequest, part: Part | None, now: float
    ) -> tuple[HeadCheck, ...]:
        """Return the checks of the head, and what the base demands."""
        what = f"cannot read pull request {pull_request.number}"
        statuses: list[Any] = []
        if pull_request.head and pull_request.state == "open":
            path = f"/commits/{segment(pull_request.head)}/statuses"
            statuses = await self.listed(path, what)
        life = _PROTECTION_LIFE if part == "all" else LIFE
        async with self._asking_what_is_required:  # each base is asked about once, by the first
            return checks_of(statuses, await self._demanded(pull_request.base, now, life))

    async def _with_talk(
        self, state: PullRequestState, compared: Compared, checks_at: float
    ) -> PullRequestState:
        """Return a state with what people say. The timeline tells whether somebody has reviewed,
        and not what is answered in threads: where there are any, all reviews are read. Where
        webhooks tell of changes, and none has told of this one, that goes for the daily reading,
        too."""
        number = state.pull_request.number
        what = f"cannot read pull request {number}"
        timeline = await self.listed(f"/issues/{number}/timeline", what)
        comments, queued = talk_of(timeline)
        events, opinions, threads = events_of(timeline), state.reviews, state.threads
        said = _said_in_reviews(state)
        known = None if threads else compared.reviews_known(events)
        before = compared.known
        unchanged = compared.told and compared.part is None and not threads
        unchanged = unchanged and before is not None and before.events == events
        if known is None and not unchanged:
            opinions, said, threads = await self._reviews(number, what)
        state = replace(
            state,
            reviews=opinions,
            threads=threads,
            comments=(*comments, *said),
            queued=queued,
        )
        talk_at = compared.now if known is None else known.talk_at
        times = {"checks_at": checks_at, "talk_at": talk_at}
        return self.known.put(compared, state, events=events, **times)

    async def _reviews(
        self, number: int, what: str
    ) -> tuple[tuple[Review, ...], tuple[Note, ...], tuple[ReviewThread, ...]]:
        """Return opinions, what was said beside them, and threads."""
        reviews = await self.listed(f"/pulls/{number}/reviews", what)
        opinions, said = reviews_of(reviews)
        notes: list[Any] = []
        for review in reviews:
            if number_of(review.get("comments_count")):
                path = f"/pulls/{number}/reviews/{segment(review['id'])}/comments"
                notes += await self.listed(path, what)
        return opinions, said, threads_of(notes)

    def _conflicts(self, item: Any, known: PullRequest, now: float) -> bool | None:
        """Return whether there are conflicts; a draft is never called mergeable."""
        if item.get("mergeable") or known.state != "open":
            self._unmergeable.pop(known.id, None)
            return False
        if known.draft or item.get("mergeable") is None:
            return None
        commits = known.head, mapping_of(item.get("base")).get("sha")
        before = self._unmergeable.get(known.id)
        if before is None or before[0] != commits:
            before = self._unmergeable[known.id] = commits, now
        return True if now - before[1] >= COMPUTING else None

    async def _demanded(self, base: str, now: float, life: float) -> tuple[str, ...]:
        """Return the names of the checks that a base demands, as it was so many seconds ago."""
        known = self._required.get(base)
        if known is None or now - known[0] >= life:
            what = f"cannot see what the branch {base} demands"
            answer = await self.ask(f"/branches/{segment(base)}", what, wanted=_MISSING)
            branch = mapping_of(answer.json()) if answer.ok else {}
            names: tuple[str, ...] = ()
            if branch.get("enable_status_check"):
                names = tuple(map(str, list_of(branch.get("status_check_contexts"))))
            known = self._required[base] = now, names
        return known[1]


def _hour_of(pull_request: PullRequest) -> int:
    """Return the hour of the day at which one is read again, so that not all are at once."""
    return pull_request.number % 24


def _said_in_reviews(state: PullRequestState) -> tuple[Note, ...]:
    return tuple(note for note in state.comments if note.id.startswith(REVIEW_NOTE))
