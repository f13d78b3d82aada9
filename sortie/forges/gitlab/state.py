"""How a merge request stands, out of what GitLab's API tells of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from sortie.forges.remembered import Mark
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

DRAFT = "Draft: "
EXPECTED = "expected:"
PIPELINE = "pipeline:"
"""Before the id of a pipeline, which is no job that has a log."""

_STATES: dict[str, Literal["open", "merged", "closed"]] = {
    "opened": "open",
    "locked": "open",
    "merged": "merged",
}
_CHECKS = {
    "success": CheckState.SUCCESS,
    "failed": CheckState.FAILURE,
    "canceled": CheckState.NEUTRAL,
    "canceling": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
    "manual": CheckState.NEUTRAL,
}
_UNKNOWN = frozenset({"", "unchecked", "checking", "preparing", "approvals_syncing"})
_OF_REVIEWS = frozenset({"not_approved", "requested_changes", "discussions_not_resolved"})
_BEHIND = "need_rebase"
_OF_CHECKS = frozenset({"ci_must_pass", "ci_still_running"})
_REVIEWS: dict[str, Literal["approved", "changes_requested", "commented"]] = {
    "approved": "approved",
    "requested_changes": "changes_requested",
    "reviewed": "commented",
}
_BOT = re.compile(r"(?:(?:project|group)_\d+_bot|service_account_)\w*")
"""What GitLab calls the users that it makes for tokens, and, by default, service accounts."""


def is_ours(item: Mapping[str, Any]) -> bool:
    """Tell whether a merge request is of a branch of the project itself, and of no fork."""
    source = number_of(item.get("source_project_id"))
    return source is not None and source == number_of(item.get("target_project_id"))


def pull_request_of(item: Any) -> PullRequest:
    """Return a merge request."""
    return PullRequest(
        id=str(item["id"]),
        number=item["iid"],
        url=str(item["web_url"]),
        state=_STATES.get(word_of(item.get("state")), "closed"),
        branch=item["source_branch"],
        base=item["target_branch"],
        title=str(item["title"]).removeprefix(DRAFT),
        body=text_of(item.get("description")) or "",
        head=text_of(item.get("sha")),
        draft=bool(item.get("draft")),
    )


def mark_of(item: Mapping[str, Any], before: Mark | None) -> Mark:
    """Return what changes in a list when a merge request does.

    While GitLab computes whether it can be merged, as after each push to its base, its status is
    what it was before.
    """
    keys = ("updated_at", "sha", "state", "draft", "user_notes_count")
    status: object = word_of(item.get("detailed_merge_status"))
    if status in _UNKNOWN and before is not None:
        status = before.checks
    of_review = status if status in _OF_REVIEWS else None
    return Mark(talk=(*map(item.get, keys), *labels_of(item), of_review), checks=status)


def listed(item: Mapping[str, Any], state: PullRequestState | None = None) -> PullRequestState:
    """Return a state with what a list tells, which is all but checks and what people say."""
    pull_request = pull_request_of(item)
    # A merge by GitLab itself waits for ever where a rebase has to be asked for before.
    rebased_first = word_of(item.get("detailed_merge_status")) == _BEHIND
    return replace(
        state or PullRequestState(pull_request=pull_request),
        pull_request=pull_request,
        conflicts=_conflicts(item),
        labels=labels_of(item),
        refusal=_refusal(item),
        automatic=not rebased_first,
        queued=not rebased_first and bool(item.get("merge_when_pipeline_succeeds")),
    )


def labels_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of a merge request."""
    return tuple(map(str, list_of(item.get("labels"))))


def _conflicts(item: Mapping[str, Any]) -> bool | None:
    """Return whether there are conflicts, None while GitLab has not looked."""
    status = word_of(item.get("detailed_merge_status"))
    if item.get("has_conflicts") and status not in _UNKNOWN:
        return True
    return None if status in _UNKNOWN else status == "conflict"


def _refusal(item: Mapping[str, Any]) -> str | None:
    """Return why GitLab would not merge it, where that is not for the checks alone."""
    status = word_of(item.get("detailed_merge_status"))
    return None if status in {*_UNKNOWN, *_OF_CHECKS, _BEHIND, "mergeable"} else status


def checks_of(
    pipeline: Mapping[str, Any], statuses: Sequence[Any], *, believed: bool
) -> tuple[HeadCheck, ...]:
    """Return jobs and statuses of the head, the newest of a name, and what its pipeline adds.

    One that is not believed is of another commit, and says no more than that one is to come.
    """
    newest = {str(one.get("name")): one for one in sorted(statuses, key=lambda one: one["id"])}
    checks = [_check(one) for one in newest.values()]
    if not pipeline:
        return tuple(checks)
    if not believed:
        return (*checks, _pipeline(pipeline, CheckState.PENDING, EXPECTED))
    state = _CHECKS.get(word_of(pipeline.get("status")), CheckState.PENDING)
    if state is CheckState.PENDING and all(c.state is not CheckState.PENDING for c in checks):
        checks.append(_pipeline(pipeline, state))
    elif state is CheckState.FAILURE and all(c.state is not CheckState.FAILURE for c in checks):
        checks.append(_pipeline(pipeline, state))  # such as one whose file cannot be read
    return tuple(checks)


def _pipeline(pipeline: Mapping[str, Any], state: CheckState, before: str = PIPELINE) -> HeadCheck:
    id_ = "pipeline" if before == EXPECTED else word_of(pipeline.get("id"))
    return HeadCheck(
        id=f"{before}{id_}",
        name="pipeline",
        state=state,
        required=True,
        url=text_of(pipeline.get("web_url")),
    )


def _check(item: Any) -> HeadCheck:
    state = _CHECKS.get(word_of(item.get("status")), CheckState.PENDING)
    if state is CheckState.FAILURE and item.get("allow_failure"):
        state = CheckState.NEUTRAL
    return HeadCheck(
        id=str(item["id"]),
        name=str(item["name"]),
        state=state,
        required=not item.get("allow_failure"),
        url=text_of(item.get("target_url")),
    )


def reviews_of(reviewers: Sequence[Any], approvals: Mapping[str, Any]) -> tuple[Review, ...]:
    """Return what reviewers think; who has approved without being one is one of them."""
    found: dict[str, Review] = {}
    for one in list_of(approvals.get("approved_by")):
        user = mapping_of(one.get("user"))
        found[word_of(user.get("username"))] = _review(user, "approved")
    for one in reviewers:
        user = mapping_of(one.get("user"))
        if (state := _REVIEWS.get(word_of(one.get("state")))) is not None:
            found[word_of(user.get("username"))] = _review(user, state)
    return tuple(found.values())


def _review(
    user: Mapping[str, Any], state: Literal["approved", "changes_requested", "commented"]
) -> Review:
    name = word_of(user.get("username"))
    return Review(id=word_of(user.get("id")), author=name, state=state, bot=_is_bot(name))


def talk_of(
    discussions: Sequence[Any], head: str | None
) -> tuple[tuple[ReviewThread, ...], tuple[Note, ...]]:
    """Return the threads, and the plain comments; what GitLab itself notes is left out."""
    threads: list[ReviewThread] = []
    comments: list[Note] = []
    for item in discussions:
        notes = [note for note in list_of(item.get("notes")) if not note.get("system")]
        if not notes:
            continue
        if not notes[0].get("resolvable"):
            comments += map(_note, notes)
            continue
        place = mapping_of(notes[0].get("position"))
        line = number_of(place.get("new_line"))
        threads.append(
            ReviewThread(
                id=str(item["id"]),
                path=text_of(place.get("new_path")),
                line=number_of(place.get("old_line")) if line is None else line,
                resolved=all(note.get("resolved") for note in notes if note.get("resolvable")),
                outdated=bool(place) and place.get("head_sha") != head,
                notes=tuple(map(_note, notes)),
            )
        )
    return tuple(threads), tuple(comments)


def events_of(discussions: Sequence[Any]) -> tuple[str, ...]:
    """Return what GitLab itself notes, such as that somebody has approved, or does so no more."""
    return tuple(
        word_of(note.get("id"))
        for item in discussions
        for note in list_of(item.get("notes"))
        if note.get("system")
    )


def _note(item: Any) -> Note:
    name = word_of(mapping_of(item.get("author")).get("username"))
    body = text_of(item.get("body")) or ""
    return Note(id=word_of(item.get("id")), author=name, body=body, bot=_is_bot(name))


def _is_bot(name: str) -> bool:
    return _BOT.fullmatch(name) is not None
