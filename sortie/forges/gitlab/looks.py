"""How merge requests stand: one list for a hundred of them, details of those that it shows changed.

The list tells neither pipelines nor discussions. What cannot be seen in it, a check that is
pending or a head that is new, is read each time. Details are read by GraphQL, up to 50 merge
requests by one question; by REST, one by one, what GraphQL does not tell whole, what a server
without it has, and everything before a merge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec.structs import replace

from sortie.forges import NOTHING_CHANGED
from sortie.forges.gitlab.batches import MergeRequestBatches
from sortie.forges.gitlab.nodes import ReadRequest, Talk
from sortie.forges.gitlab.state import (
    checks_of,
    events_of,
    listed,
    mark_of,
    pull_request_of,
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
        self._batches = MergeRequestBatches(client, name)
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
        few = len(pull_requests) == 1
        # A list would tell nothing where each is read anyway.
        at_once = not afresh and (few or all(one.id in changed for one in pull_requests))
        read = await self._batches.read(pull_requests) if at_once else {}
        listed_ones = [one for one in pull_requests if one.id not in read]
        items = {id_: one.item for id_, one in read.items()} | await self._listed(listed_ones)
        parts = {one.id: "all" if afresh else changed.get(one.id) for one in pull_requests}
        compared = {
            one.id: self._compared(items[one.id], parts[one.id], told)
            for one in pull_requests
            if one.id in items
        }
        if not at_once and not afresh:
            moved = [one for one in listed_ones if one.id in items and compared[one.id].has_moved]
            read = await self._batches.read(moved)
        found: dict[str, PullRequestState] = {}

        async def look_at(one: PullRequest) -> None:
            state = None
            if one.id in items:
                state = await self._state(items[one.id], compared[one.id], read.get(one.id))
            if state is None:
                self.known.forget(one.id)
                self._computing.pop(one.id, None)
            else:
                self.seen(state.pull_request)
                found[one.id] = state

        await each(look_at, pull_requests)
        if any(one.id not in found for one in pull_requests):
            await self.require_visible()
        if at_once:
            await self._have_computed([found[id_] for id_ in read if id_ in found])
        return {one.id: found[one.id] for one in pull_requests if one.id in found}

    async def _have_computed(self, states: Sequence[PullRequestState]) -> None:
        """Have GitLab compute whether there are conflicts, which no question of GraphQL does. What
        it answers is not taken: it may be of a later head than the rest."""
        unknown = [state.pull_request for state in states if state.conflicts is None]
        if unknown:
            await self._listed(unknown)

    async def _listed(self, pull_requests: Sequence[PullRequest]) -> dict[str, Any]:
        """Return merge requests by their ids; one alone with what no list tells."""
        if len(pull_requests) == 1:
            return await self._item(pull_requests[0])
        return await self._items(pull_requests)

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

    def _compared(self, item: Any, part: Part | None, told: bool) -> Compared:
        """Return what is known of one beside what the forge shows of it now."""
        known = self.known.get(str(item["id"]))
        return Compared(
            known=known,
            mark=mark_of(item, None if known is None else known.mark),
            head=pull_request_of(item).head,
            part=part,
            told=told,
            now=trio.current_time(),
        )

    async def _state(
        self, item: Any, compared: Compared, read: ReadRequest | None
    ) -> PullRequestState | None:
        """Return how one stands, with what of it has to be read again; None where it is gone.

        ``read`` is what GraphQL has told of it.
        """
        before = None if compared.known is None else compared.known.state
        state = listed(item if read is None else read.item, before)
        checks, talk = compared.checks_known, compared.talk_known
        if read is not None:
            checks = talk = None
        elif checks is not None and talk is not None:
            if not self._is_overdue(state, compared.now):
                return state
            checks = None
        if checks is None:
            told = None if read is None else read.checks
            if told is None and _PIPELINE not in item:
                found = await self._item(state.pull_request)
                if (item := found.get(state.pull_request.id)) is None:
                    return None
                state = listed(item, before)
            if told is None:
                told = await self._checks(item, state.pull_request)
            state = replace(state, checks=told)
        checks_at = compared.now if checks is None else checks.checks_at
        if talk is None:
            said = None if read is None else read.talk
            return await self._with_talk(state, compared, checks_at, said)
        times = {"checks_at": checks_at, "talk_at": talk.talk_at}
        return self.known.put(compared, state, events=talk.events, **times)

    async def _with_talk(
        self, state: PullRequestState, compared: Compared, checks_at: float, said: Talk | None
    ) -> PullRequestState:
        """Return a state with what people say: what GraphQL has told, or what REST tells. What
        GitLab itself notes beside that, and the status of the request, tell whether somebody has
        reviewed."""
        number = state.pull_request.number
        what, path = f"cannot read merge request {number}", f"/merge_requests/{number}"
        if said is None:
            discussions = await self.listed(f"{path}/discussions", what)
        else:
            discussions = said.discussions
        threads, comments = talk_of(discussions, state.pull_request.head)
        events, reviews = (*events_of(discussions), state.refusal or ""), state.reviews
        known = None
        if said is not None:
            reviews = reviews_of(said.reviewers, said.approvals)
        elif (known := compared.reviews_known(events)) is None:
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
