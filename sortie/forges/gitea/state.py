"""How a pull request stands, out of what Gitea's API tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from sortie.forges.http_forge import REVIEW_NOTE
from sortie.forges.remembered import Mark
from sortie.http.json_values import list_of, mapping_of, number_of, text_of, word_of
from sortie.model import PullRequest
from sortie.model.pull_requests import CheckState, HeadCheck, Note, Review, ReviewThread

DRAFT = "WIP: "

_CHECKS = {
    "success": CheckState.SUCCESS,
    "failure": CheckState.FAILURE,
    "error": CheckState.FAILURE,
    "warning": CheckState.NEUTRAL,
    "skipped": CheckState.NEUTRAL,
}
_REVIEWS: dict[str, Literal["approved", "changes_requested", "commented"]] = {
    "APPROVED": "approved",
    "REQUEST_CHANGES": "changes_requested",
    "COMMENT": "commented",
}
_ACTIONS_USER = -2
"""The number of the user as whom a server's own Actions write."""

_SCHEDULED, _CANCELLED = "pull_scheduled_merge", "pull_cancel_scheduled_merge"


def is_ours(item: Any, name: str) -> bool:
    """Tell whether a pull request is of a branch of the repository itself, and of no fork."""
    repo = mapping_of(mapping_of(item.get("head")).get("repo"))
    return word_of(repo.get("full_name")).casefold() in ("", name.casefold())


def pull_request_of(item: Any) -> PullRequest:
    """Return a pull request."""
    state: Literal["open", "merged", "closed"] = "open" if item["state"] == "open" else "closed"
    if item.get("merged"):
        state = "merged"
    return PullRequest(
        id=str(item["id"]),
        number=item["number"],
        url=str(item["html_url"]),
        state=state,
        branch=item["head"]["ref"],
        base=item["base"]["ref"],
        title=str(item["title"]).removeprefix(DRAFT),
        body=text_of(item.get("body")) or "",
        head=text_of(item["head"].get("sha")),
        draft=bool(item.get("draft")) or str(item["title"]).startswith(DRAFT),
    )


def mark_of(item: Mapping[str, Any]) -> Mark:
    """Return what changes in a list when a pull request does."""
    known = pull_request_of(item)
    values = (item.get(key) for key in ("updated_at", "comments", "review_comments"))
    return Mark(talk=(*values, known.head, known.state, known.draft, *labels_of(item)))


def commented_mark(mark: Mark, comments: Sequence[Any]) -> Mark:
    """Return the mark that a list shows after comments alone: Gitea counts them, and sets the time
    of the pull request to that of the newest. Where it shows another, talk is read again."""
    times = [word_of(item.get("created_at")) for item in comments]
    return Mark(talk=(max(times, default=mark.talk[0]), len(comments), *mark.talk[2:]))


def labels_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of a pull request."""
    return tuple(str(label["name"]) for label in list_of(item.get("labels")))


def checks_of(statuses: Sequence[Any], required: Iterable[str]) -> tuple[HeadCheck, ...]:
    """Return the newest status of each name, and those that are demanded and not there.

    Whether one is demanded is not known where nothing is, or by a pattern.
    """
    newest = {str(one.get("context")): one for one in sorted(statuses, key=lambda one: one["id"])}
    demanded = tuple(required)
    checks = [_check(name, one, demanded) for name, one in newest.items()]
    checks += [
        HeadCheck(id=f"expected:{name}", name=name, state=CheckState.PENDING, required=True)
        for name in demanded
        if not _is_pattern(name) and name not in newest
    ]
    return tuple(checks)


def _check(name: str, item: Any, required: tuple[str, ...]) -> HeadCheck:
    told = bool(required) and not any(map(_is_pattern, required))
    return HeadCheck(
        id=str(item["id"]),
        name=name,
        state=_CHECKS.get(word_of(item.get("status")), CheckState.PENDING),
        required=True if name in required else False if told else None,
        url=text_of(item.get("target_url")),
    )


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[{")


def reviews_of(reviews: Sequence[Any]) -> tuple[tuple[Review, ...], tuple[Note, ...]]:
    """Return the newest opinion of each reviewer, and the texts of those that only comment."""
    opinions: dict[str, Review] = {}
    comments: list[Note] = []
    for item in sorted(reviews, key=lambda one: one["id"]):
        if (review := _review(item)) is None:
            continue
        before = opinions.get(review.author)
        if review.state != "commented" or before is None or before.state == "commented":
            opinions[review.author] = review
        elif review.body.strip():
            id_ = f"{REVIEW_NOTE}{review.id}"
            comments.append(Note(id=id_, author=review.author, body=review.body, bot=review.bot))
    return tuple(opinions.values()), tuple(comments)


def _review(item: Any) -> Review | None:
    if (state := _REVIEWS.get(word_of(item.get("state")))) is None:
        return None
    author, bot = _author(item)
    return Review(
        id=str(item["id"]),
        author=author,
        state="dismissed" if item.get("dismissed") else state,
        body=text_of(item.get("body")) or "",
        bot=bot,
        head=text_of(item.get("commit_id")) or None,
    )


def threads_of(comments: Iterable[Any]) -> tuple[ReviewThread, ...]:
    """Return the comments of reviews by their places: what stands at one is one conversation.

    ``position`` is a line of the new version, ``original_position`` one of the old; the other one
    is 0. Whether a later push has changed the place is not told.
    """
    places: dict[tuple[str, int, int], list[Any]] = {}
    for item in sorted(comments, key=lambda one: one["id"]):
        new, old = number_of(item.get("position")), number_of(item.get("original_position"))
        places.setdefault((word_of(item.get("path")), new or 0, old or 0), []).append(item)
    return tuple(
        ReviewThread(
            id=str(notes[0]["id"]),
            path=path or None,
            line=new or old or None,
            resolved=any(mapping_of(note.get("resolver")) for note in notes),
            notes=tuple(map(_note, notes)),
        )
        for (path, new, old), notes in places.items()
    )


def talk_of(timeline: Sequence[Any]) -> tuple[tuple[Note, ...], bool]:
    """Return the comments of a timeline, and whether a merge is scheduled."""
    scheduled = False
    comments = []
    for item in timeline:
        kind = word_of(item.get("type"))
        if kind == "comment":
            comments.append(_note(item))
        elif kind in (_SCHEDULED, _CANCELLED):
            scheduled = kind == _SCHEDULED
    return tuple(comments), scheduled


def events_of(timeline: Sequence[Any]) -> tuple[str, ...]:
    """Return what a timeline tells beside comments, such as reviews, and that one was dismissed."""
    others = (item for item in timeline if word_of(item.get("type")) != "comment")
    return tuple(f"{word_of(item.get('type'))} {word_of(item.get('id'))}" for item in others)


def _note(item: Any) -> Note:
    author, bot = _author(item)
    body = text_of(item.get("body")) or ""
    return Note(id=str(item["id"]), author=author, body=body, bot=bot)


def _author(item: Any) -> tuple[str, bool]:
    user = mapping_of(item.get("user"))
    return word_of(user.get("login")), number_of(user.get("id")) == _ACTIONS_USER
