"""How merge requests stand: one list for a hundred of them, details of those that it shows changed.

The list tells neither pipelines nor discussions. What cannot be seen in it, a check that is
pending or a head that is new, is read each time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec.structs import replace

from sortie.forges import NOTHING_CHANGED
from sortie.forges.gitlab.state import (
    checks_of,
    events_of,
    listed,
    mark_of,
    reviews_of,
    talk_of,
)
from sortie.forges.http_forge import HttpForge
from sortie.forges.remembered import Compared, RememberedStates
from sortie.http.at_once import each
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, word_of
from sortie.model import PullRequest
from sortie.model.pull_requests import HeadCheck, PullRequestState
from sortie.model.webhooks import Part

_LISTED = 100
_COMPUTING = 60.0
"""Seconds after which a merge request is read for its own sake, which has it computed as well."""

_RECHECK = ("with_merge_status_recheck", "true")
_MERGED_RESULT = re.compile(r"refs/merge-requests/\d+/(?:merge|train)")
"""The ref of a pipeline that runs on the merge of a head with its base."""

_PIPELINE = "head_pipeline"
"""What a merge request tells for itself, and in no list."""

_MISSING = frozenset({404})


class GitLabLooks(HttpForge):
    """Looks at the merge requests of one project."""

    def __init__(self, client: HttpClient, root: str, name: str) -> None:
        super().__init__(client, root, name)
        self.known = RememberedStates()
        self._computing: dict[str, float] = {}

    async def look(
        self,
        pull_requests: Sequence[PullRequest],
        *,
        afresh: bool = False,
        changed: Mapping[str, Part] = NOTHING_CHANGED,
        told: bool = False,
    ) -> Mapping[str, PullRequestState]:
        """Return how merge requests stand; what is gone is left out."""
        if len(pull_requests) == 1:
            items = await self._item(pull_requests[0])
        else:
            items = await self._items(pull_requests)
        found: dict[str, PullRequestState] = {}

        async def read(pull_request: PullRequest) -> None:
            item = items.get(pull_request.id)
            part = "all" if afresh else changed.get(pull_request.id)
            state = None if item is None else await self._state(item, part, told)
            if state is None:
                self.known.forget(pull_request.id)
                self._computing.pop(pull_request.id, None)
            else:
                self.seen(state.pull_request)
                found[pull_request.id] = state

        await each(read, pull_requests)
        if any(one.id not in found for one in pull_requests):
            await self.require_visible()
        return {one.id: found[one.id] for one in pull_requests if one.id in found}

    async def _item(self, pull_request: PullRequest) -> dict[str, Any]:
        """Return one by its id, with what no list tells; nothing where it is gone."""
        what = f"cannot read merge request {pull_request.number}"
        path = f"/merge_requests/{pull_request.number}"
        answer = await self.ask(path, what, wanted=_MISSING)
        return {str(answer.json()["id"]): answer.json()} if answer.ok else {}

    async def _items(self, pull_requests: Sequence[PullRequest]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        what = f"cannot list {len(pull_requests)} merge requests"
        for start in range(0, len(pull_requests), _LISTED):
            some = pull_requests[start : start + _LISTED]
            # What GitLab has to compute it computes for a list only where it is asked to.
            params: list[tuple[str, str | int]] = [("state", "all"), _RECHECK]
            params += [("iids[]", one.number) for one in some]
            items = await self.listed("/merge_requests", what, params)
            found |= {str(item["id"]): item for item in items}
        return found

    async def _state(self, item: Any, part: Part | None, told: bool) -> PullRequestState | None:
        """Return how one stands, with what of it has to be read again; None where it is gone."""
        known = self.known.get(str(item["id"]))
        before = None if known is None else known.state
        state = listed(item, before)
        compared = Compared(
            known=known,
            mark=mark_of(item, None if known is None else known.mark),
            head=state.pull_request.head,
            part=part,
            told=told,
            now=trio.current_time(),
        )
        checks, talk = compared.checks_known, compared.talk_known
        if checks is not None and talk is not None:
            if not self._is_overdue(state, compared.now):
                return state
            checks = None
        if checks is None and _PIPELINE not in item:
            found = await self._item(state.pull_request)
            if (item := found.get(state.pull_request.id)) is None:
                return None
            state = listed(item, before)
        if checks is None:
            state = replace(state, checks=await self._checks(item, state.pull_request))
        checks_at = compared.now if checks is None else checks.checks_at
        if talk is None:
            return await self._with_talk(state, compared, checks_at)
        times = {"checks_at": checks_at, "talk_at": talk.talk_at}
        return self.known.put(compared, state, events=talk.events, **times)

    async def _with_talk(
        self, state: PullRequestState, compared: Compared, checks_at: float
    ) -> PullRequestState:
        """Return a state with what people say. What GitLab itself notes beside that, and the status
        of the request, tell whether somebody has reviewed."""
        number = state.pull_request.number
        what, path = f"cannot read merge request {number}", f"/merge_requests/{number}"
        discussions = await self.listed(f"{path}/discussions", what)
        threads, comments = talk_of(discussions, state.pull_request.head)
        events, reviews = (*events_of(discussions), state.refusal or ""), state.reviews
        known = compared.reviews_known(events)
        if known is None:
            reviewers = await self.listed(f"{path}/reviewers", what)
            approvals = mapping_of((await self.ask(f"{path}/approvals", what)).json())
            reviews = reviews_of(reviewers, approvals)
        state = replace(state, reviews=reviews, threads=threads, comments=comments)
        talk_at = compared.now if known is None else known.talk_at
        times = {"checks_at": checks_at, "talk_at": talk_at}
        return self.known.put(compared, state, events=events, **times)

    def _is_overdue(self, state: PullRequestState, now: float) -> bool:
        """Tell whether GitLab should have computed by now whether there are conflicts."""
        id_ = state.pull_request.id
        if state.conflicts is not None:
            self._computing.pop(id_, None)
            return False
        if now - self._computing.setdefault(id_, now) < _COMPUTING:
            return False
        del self._computing[id_]
        return True

    async def _checks(self, item: Any, request: PullRequest) -> tuple[HeadCheck, ...]:
        """Return the checks of the head, and of its merge with the base where that is what the
        pipeline runs on."""
        if not request.head or request.state != "open":
            return ()
        head, what = request.head, f"cannot read merge request {request.number}"
        commits = f"/repository/commits/{segment(head)}"
        statuses = await self.listed(f"{commits}/statuses", what)
        pipeline = mapping_of(item.get(_PIPELINE))
        sha = word_of(pipeline.get("sha"))
        believed = sha == head
        if sha and not believed and _MERGED_RESULT.fullmatch(word_of(pipeline.get("ref"))):
            commits = f"/repository/commits/{segment(sha)}"
            answer = await self.ask(commits, what, wanted=_MISSING)
            parents = mapping_of(answer.json()).get("parent_ids") if answer.ok else None
            if head in list_of(parents):
                believed = True
                statuses += await self.listed(f"{commits}/statuses", what)
        return checks_of(pipeline, statuses, believed=believed)
