"""How merge requests stand: one list for a hundred of them, details of those that it shows changed.

The list tells neither pipelines nor discussions. What cannot be seen in it, a check that is
pending or a head that is new, is read each time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec.structs import replace

from sortie.forges.gitlab.state import (
    checks_of,
    conflicts_of,
    is_queued,
    labels_of,
    mark_of,
    pull_request_of,
    refusal_of,
    reviews_of,
    talk_of,
)
from sortie.forges.http_forge import HttpForge
from sortie.forges.remembered import RememberedStates
from sortie.http.at_once import each
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import mapping_of
from sortie.model import PullRequest
from sortie.model.pull_requests import PullRequestState

_LISTED = 100
_MISSING = frozenset({404})


class GitLabLooks(HttpForge):
    """Looks at the merge requests of one project."""

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        super().__init__(client, root, name)
        self.known = RememberedStates()

    async def look(
        self, pull_requests: Sequence[PullRequest], *, afresh: bool = False
    ) -> Mapping[str, PullRequestState]:
        """Return how merge requests stand; what is gone is left out."""
        listed = await self._listed(pull_requests)
        found: dict[str, PullRequestState] = {}

        async def read(pull_request: PullRequest) -> None:
            item = listed.get(pull_request.id)
            state = None if item is None else await self._state(item, afresh)
            if state is None:
                self.known.forget(pull_request.id)
            else:
                self.seen(state.pull_request)
                found[pull_request.id] = state

        await each(read, pull_requests)
        return {one.id: found[one.id] for one in pull_requests if one.id in found}

    async def _listed(self, pull_requests: Sequence[PullRequest]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        what = f"cannot list {len(pull_requests)} merge requests"
        for start in range(0, len(pull_requests), _LISTED):
            some = pull_requests[start : start + _LISTED]
            params: list[tuple[str, str | int]] = [("state", "all")]
            params += [("iids[]", one.number) for one in some]
            items = await self.listed("/merge_requests", what, params)
            found |= {str(item["id"]): item for item in items}
        return found

    async def _state(self, item: Any, afresh: bool) -> PullRequestState | None:
        """Return how one stands, with what of it has to be read again; None where it is gone."""
        now, mark = trio.current_time(), mark_of(item)
        known = self.known.get(str(item["id"]))
        if known is not None and not afresh and known.is_whole(mark, now):
            return known.state
        number, what = item["iid"], f"cannot read merge request {item['iid']}"
        path = f"/merge_requests/{number}"
        answer = await self.ask(path, what, wanted=_MISSING)
        if not answer.ok:
            return None
        item = answer.json()
        pull_request = pull_request_of(item)
        statuses: list[Any] = []
        if pull_request.head:
            head = segment(pull_request.head)
            statuses = await self.listed(f"/repository/commits/{head}/statuses", what)
        seen = PullRequestState(
            pull_request=pull_request,
            conflicts=conflicts_of(item),
            checks=checks_of(item, statuses),
            labels=labels_of(item),
            refusal=refusal_of(item),
            automatic=True,
            queued=is_queued(item),
        )
        if known is not None and not afresh and known.has_talk(mark, now):
            was = known.state
            state = replace(seen, reviews=was.reviews, threads=was.threads, comments=was.comments)
            return self.known.put(mark, state, now, known.talk_at)
        reviewers = await self.listed(f"{path}/reviewers", what)
        approvals = mapping_of((await self.ask(f"{path}/approvals", what)).json())
        discussions = await self.listed(f"{path}/discussions", what)
        threads, comments = talk_of(discussions, pull_request.head)
        reviews = reviews_of(reviewers, approvals)
        state = replace(seen, reviews=reviews, threads=threads, comments=comments)
        return self.known.put(mark, state, now)
