"""How pull requests stand: the list of open ones, details of those that it shows changed.

Rule: that Gitea cannot merge one is believed when it is told twice, for the same commits, some
seconds apart: it says the same while it computes whether there are conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec.structs import replace

from sortie.forges.gitea.state import (
    checks_of,
    labels_of,
    mark_of,
    pull_request_of,
    reviews_of,
    talk_of,
    threads_of,
)
from sortie.forges.http_forge import HttpForge
from sortie.forges.remembered import RememberedStates
from sortie.http.answers import HttpAnswer
from sortie.http.at_once import each
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, number_of
from sortie.http.pages import next_link, walk
from sortie.http.requests import HttpRequest
from sortie.model import PullRequest
from sortie.model.pull_requests import PullRequestState

COMPUTING = 3.0
"""Seconds for which it is not believed that one cannot be merged."""

_PROTECTION_LIFE = 300.0
_MISSING = frozenset({404})


class GiteaLooks(HttpForge):
    """Looks at the pull requests of one repository."""

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        super().__init__(client, root, name)
        self.known = RememberedStates()
        self._unmergeable: dict[str, tuple[object, float]] = {}
        self._required: dict[str, tuple[float, tuple[str, ...]]] = {}

    async def look(
        self, pull_requests: Sequence[PullRequest], *, afresh: bool = False, told: bool = False
    ) -> Mapping[str, PullRequestState]:
        """Return how pull requests stand; what is gone is left out."""
        few = len(pull_requests) == 1  # one request, and none for the list
        listed = {} if few else await self._listed(pull_requests)
        found: dict[str, PullRequestState] = {}

        async def read(pull_request: PullRequest) -> None:
            item = listed.get(pull_request.id)
            if item is None:
                item = await self._item(pull_request)
            if item is None:
                self.known.forget(pull_request.id)
                self._unmergeable.pop(pull_request.id, None)
            else:
                found[pull_request.id] = await self._state(item, afresh, told)

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

    async def _state(self, item: Any, afresh: bool, told: bool) -> PullRequestState:
        """Return how one stands, with what of it has to be read again."""
        now, mark = trio.current_time(), mark_of(item)
        pull_request = self.seen(pull_request_of(item))
        known = self.known.get(pull_request.id)
        listed = replace(
            PullRequestState(pull_request=pull_request) if known is None else known.state,
            pull_request=pull_request,
            conflicts=self._conflicts(item, pull_request, now),
            labels=labels_of(item),
            automatic=True,
        )
        if known is not None and not afresh and known.is_whole(mark, now, told=told):
            return listed
        number, what = item["number"], f"cannot read pull request {item['number']}"
        statuses: list[Any] = []
        if pull_request.head and pull_request.state == "open":
            path = f"/commits/{segment(pull_request.head)}/statuses"
            statuses = await self.listed(path, what)
        checks = checks_of(statuses, await self._demanded(pull_request.base, now))
        if known is not None and not afresh and known.has_talk(mark, now, told=told):
            return self.known.put(mark, replace(listed, checks=checks), now, known.talk_at)
        reviews = await self.listed(f"/pulls/{number}/reviews", what)
        opinions, said = reviews_of(reviews)
        notes: list[Any] = []
        for review in reviews:
            if number_of(review.get("comments_count")):
                path = f"/pulls/{number}/reviews/{segment(review['id'])}/comments"
                notes += await self.listed(path, what)
        comments, queued = talk_of(await self.listed(f"/issues/{number}/timeline", what))
        state = replace(
            listed,
            checks=checks,
            reviews=opinions,
            threads=threads_of(notes),
            comments=(*comments, *said),
            queued=queued,
        )
        return self.known.put(mark, state, now)

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

    async def _demanded(self, base: str, now: float) -> tuple[str, ...]:
        """Return the names of the checks that a base demands."""
        known = self._required.get(base)
        if known is None or now >= known[0]:
            what = f"cannot see what the branch {base} demands"
            answer = await self.ask(f"/branches/{segment(base)}", what, wanted=_MISSING)
            branch = mapping_of(answer.json()) if answer.ok else {}
            names: tuple[str, ...] = ()
            if branch.get("enable_status_check"):
                names = tuple(map(str, list_of(branch.get("status_check_contexts"))))
            known = self._required[base] = now + _PROTECTION_LIFE, names
        return known[1]
