"""How a pull request stands, out of what GitHub's APIs tell of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from sortie.forges.http_forge import DIFF_NOTE, REVIEW_NOTE
from sortie.http.json_values import list_of, mapping_of, number_of, text_of, word_of
from sortie.model import PullRequest
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    Note,
    PullRequestState,
    Review,
    ReviewThread,
)

EXPECTED = "expected:"
STATUS = "status:"

_STATES: dict[str, CheckState] = {
    "success": CheckState.SUCCESS,
    "failure": CheckState.FAILURE,
    "error": CheckState.FAILURE,
    "timed_out": CheckState.FAILURE,
    "action_required": CheckState.FAILURE,
    "startup_failure": CheckState.FAILURE,
    "neutral": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
    "cancelled": CheckState.NEUTRAL,
    "stale": CheckState.NEUTRAL,
}
_REVIEWS: dict[str, Literal["approved", "changes_requested", "commented", "dismissed"]] = {
    "APPROVED": "approved",
    "CHANGES_REQUESTED": "changes_requested",
    "COMMENTED": "commented",
    "DISMISSED": "dismissed",
}
_OF_REVIEWS = frozenset({"REVIEW_REQUIRED", "CHANGES_REQUESTED"})
_OF_MERGING = frozenset({"DIRTY", "DRAFT"})
_PULL_STATES: dict[str, Literal["open", "merged", "closed"]] = {"OPEN": "open", "MERGED": "merged"}


def is_ours(item: Any) -> bool:
    """Tell whether a pull request is of a branch of the repository itself, and of no fork."""
    head, base = (mapping_of(mapping_of(item.get(side)).get("repo")) for side in ("head", "base"))
    return head.get("id") is not None and head.get("id") == base.get("id")


def pull_request_of_rest(item: Any) -> PullRequest:
    """Return a pull request as REST tells it."""
    state: Literal["open", "merged", "closed"] = "open" if item["state"] == "open" else "closed"
    if item.get("merged_at"):
        state = "merged"
    return PullRequest(
        id=word_of(item.get("node_id")) or str(item["id"]),
        number=item["number"],
        url=str(item["html_url"]),
        state=state,
        branch=item["head"]["ref"],
        base=item["base"]["ref"],
        title=str(item["title"]),
        body=text_of(item.get("body")) or "",
        head=item["head"]["sha"],
        draft=bool(item.get("draft")),
    )


def state_of(node: Mapping[str, Any]) -> PullRequestState:
    """Return how a pull request stands, of a node whose lists are whole."""
    known = _pull_request(node)
    checks = _checks(node, known)
    opinions = [_review(item) for item in _nodes(node["latestOpinionatedReviews"])]
    latest = [_review(item) for item in _nodes(node["latestReviews"])]
    with_opinion = {review.author for review in opinions}
    comments = [_note(item) for item in _nodes(node["comments"])]
    # Auto-merge waits for ever where the base has to be brought in first; a queue does that.
    waits = node["mergeStateStatus"] == "BEHIND" and not node["isMergeQueueEnabled"]
    comments += [
        Note(id=f"{REVIEW_NOTE}{said.id}", author=said.author, body=said.body, bot=said.bot)
        for said in latest
        if said.state == "commented" and said.author in with_opinion and said.body.strip()
    ]
    return PullRequestState(
        pull_request=known,
        conflicts={"CONFLICTING": True, "MERGEABLE": False}.get(node["mergeable"]),
        checks=checks,
        reviews=(*opinions, *(said for said in latest if said.author not in with_opinion)),
        threads=tuple(_thread(item) for item in _nodes(node["reviewThreads"])),
        comments=tuple(comments),
        labels=tuple(str(label["name"]) for label in _nodes(node["labels"])),
        refusal=_refusal(node, checks),
        automatic=not waits
        and bool(node["isMergeQueueEnabled"] or node["repository"]["autoMergeAllowed"]),
        queued=not waits and bool(node["isInMergeQueue"] or node["autoMergeRequest"]),
        has_queue=bool(node["isMergeQueueEnabled"]),
    )


def _pull_request(node: Mapping[str, Any]) -> PullRequest:
    return PullRequest(
        id=str(node["id"]),
        number=node["number"],
        url=str(node["url"]),
        state=_PULL_STATES.get(node["state"], "closed"),
        branch=node["headRefName"],
        base=node["baseRefName"],
        title=str(node["title"]),
        body=str(node["body"]),
        head=node["headRefOid"],
        draft=bool(node["isDraft"]),
    )


def _checks(node: Mapping[str, Any], known: PullRequest) -> tuple[HeadCheck, ...]:
    """Return the checks of the head; those of another commit say nothing about it."""
    commits = [mapping_of(item.get("commit")) for item in _nodes(node["commits"])]
    if not commits:
        return ()
    if commits[-1].get("oid") != known.head:
        name = "checks of the new head"
        return (HeadCheck(id=f"{EXPECTED}{name}", name=name, state=CheckState.PENDING),)
    rollup = mapping_of(commits[-1].get("statusCheckRollup"))
    return tuple(_check(item) for item in _nodes(rollup.get("contexts")))


def _check(item: Mapping[str, Any]) -> HeadCheck:
    if item["__typename"] == "CheckRun":
        done = item["status"] == "COMPLETED"
        state = _STATES.get(word_of(item.get("conclusion")).lower(), CheckState.PENDING)
        return HeadCheck(
            id=_run_id(item),
            name=str(item["name"]),
            state=state if done else CheckState.PENDING,
            required=bool(item["isRequired"]),
            url=text_of(item.get("url")),
        )
    name, told = str(item["context"]), word_of(item.get("state"))
    return HeadCheck(
        id=f"{EXPECTED if told == 'EXPECTED' else STATUS}{name}",
        name=name,
        state=_STATES.get(told.lower(), CheckState.PENDING),
        required=bool(item["isRequired"]),
        url=text_of(item.get("targetUrl")),
    )


def _run_id(item: Mapping[str, Any]) -> str:
    """Return the id of a check run, which GraphQL tells as a number of 32 bits at most: too small.

    Both its addresses end with it, ``/runs/ID`` or ``/job/ID``.
    """
    for key in ("url", "permalink"):
        if found := re.search(r"/(\d+)/?(?:[?#].*)?\Z", text_of(item.get(key)) or ""):
            return found[1]
    return f"{STATUS}{item['name']}"


def _review(item: Mapping[str, Any]) -> Review:
    author, bot = _author(item)
    return Review(
        id=word_of(item.get("fullDatabaseId")),
        author=author,
        state=_REVIEWS.get(item["state"], "commented"),
        body=text_of(item.get("body")) or "",
        bot=bot,
        head=text_of(mapping_of(item.get("commit")).get("oid")),
    )


def _thread(item: Mapping[str, Any]) -> ReviewThread:
    line = number_of(item.get("line"))
    return ReviewThread(
        id=str(item["id"]),
        path=text_of(item.get("path")),
        line=number_of(item.get("originalLine")) if line is None else line,
        resolved=bool(item["isResolved"]),
        outdated=bool(item["isOutdated"]),
        notes=tuple(_note(note, DIFF_NOTE) for note in _nodes(item["comments"])),
    )


def _note(item: Mapping[str, Any], before: str = "") -> Note:
    author, bot = _author(item)
    id_ = f"{before}{word_of(item.get('fullDatabaseId'))}"
    return Note(id=id_, author=author, body=text_of(item.get("body")) or "", bot=bot)


def _author(item: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the login as REST has it, with a word behind that of an App; "" for a deleted one."""
    author = mapping_of(item.get("author"))
    login, bot = word_of(author.get("login")), author.get("__typename") == "Bot"
    return (f"{login}[bot]" if bot and not login.endswith("[bot]") else login), bot


def _refusal(node: Mapping[str, Any], checks: tuple[HeadCheck, ...]) -> str | None:
    """Return why GitHub would refuse a merge, where it is not for the checks alone."""
    merging, decision = word_of(node["mergeStateStatus"]), word_of(node.get("reviewDecision"))
    if merging in _OF_MERGING:
        return merging.lower()
    if decision in _OF_REVIEWS:
        return decision.lower()
    green = (CheckState.SUCCESS, CheckState.NEUTRAL)
    if merging == "BLOCKED" and all(c.state in green for c in checks if c.required):
        return "blocked"
    return None


def _nodes(connection: object) -> list[Any]:
    """Return what is in a list; GraphQL leaves null where a single one cannot be told."""
    return [node for node in list_of(mapping_of(connection).get("nodes")) if node is not None]
