"""A pull request that is watched, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import get_args

from msgspec import Struct, field

from sortie.model.pull_requests import HeadCheck, Note, PullRequest, Review, ReviewThread

CAUSES_KEPT = 1000
"""Causes of reactions that are remembered of a pull request, the newest."""

HEADS_KEPT = 50
"""Heads of Sortie's own that are remembered of a pull request, the newest."""


REFUSED = "refused:"
"""How the name of a cause begins that says of a head that its merge was given up."""


class ReactionKind(StrEnum):
    """What a further run is started for, in the order in which prompts tell of it."""

    CONFLICTS = "conflicts"
    CHECKS = "checks"
    REVIEW = "review"
    COMMANDS = "commands"


class Reaction(Struct, frozen=True, kw_only=True):
    """What a further run is to answer.

    ``causes`` are the names of what has happened; ``head`` is the commit at which it has.
    ``comments`` are those that ask for something. What people and programs have written is data.
    """

    kinds: tuple[ReactionKind, ...]
    causes: tuple[str, ...]
    head: str | None
    conflicts: bool = False
    checks: tuple[HeadCheck, ...] = ()
    reviews: tuple[Review, ...] = ()
    threads: tuple[ReviewThread, ...] = ()
    comments: tuple[Note, ...] = ()
    labelled: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """Its kinds, for people and programs."""
        return tuple(kind.value for kind in self.kinds)


class ThreadReply(Struct, frozen=True, kw_only=True, tag="reply"):
    """An answer in a review thread, made once for its key; of the notes the first is there,
    without its text."""

    thread: ReviewThread
    body: str
    key: str


class PullRequestComment(Struct, frozen=True, kw_only=True, tag="remark"):
    """A comment on the pull request, made once for its key."""

    body: str
    key: str


class Acknowledgement(Struct, frozen=True, kw_only=True, tag="acknowledge"):
    """A reaction on a comment, which shows that it was seen."""

    note: Note


class LabelChange(Struct, frozen=True, kw_only=True, tag="relabel"):
    """Labels that are added to the pull request, and taken from it."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


class CheckRerun(Struct, frozen=True, kw_only=True, tag="rerun"):
    """A check that is made again."""

    check: HeadCheck


class MergeCancellation(Struct, frozen=True, kw_only=True, tag="cancel_merge"):
    """The forge no longer merges by itself what it was told to merge."""


class BranchDeletion(Struct, frozen=True, kw_only=True, tag="delete_branch"):
    """The branch of a merged pull request goes."""


class IssueMove(Struct, frozen=True, kw_only=True, tag="move_issue"):
    """The issue is moved to a state, as its pull request is over."""

    state: str


Errand = (
    ThreadReply
    | PullRequestComment
    | Acknowledgement
    | LabelChange
    | CheckRerun
    | MergeCancellation
    | BranchDeletion
    | IssueMove
)
"""What is to be done at the forge, or the tracker, beside runs and merges."""

ERRANDS: tuple[str, ...] = tuple(kind.__struct_config__.tag for kind in get_args(Errand))
"""The words for them."""


def word_for(errand: Errand) -> str:
    """Return the word for an errand."""
    return str(errand.__struct_config__.tag)


class Watch(Struct, frozen=True, kw_only=True):
    """What is on record of a watched pull request.

    ``since`` is in Unix seconds. ``causes`` were answered, or are being answered by ``reaction``,
    whose run is to come or under way. ``runs`` counts reactions by kind since somebody else has
    moved the head. ``heads`` are those that Sortie has made, the newest last. ``reruns`` are
    checks that were made again. ``errands`` are done one after another. ``merging`` is the head
    with which Sortie has begun to merge; ``updated``: its base was brought in, so that a new head
    is awaited. ``exhausted`` is the kind of which there may be no further run. ``over`` says why
    it is watched no longer, once its errands are done; ``former``: they are, and it is remembered
    in case that it is opened again.
    """

    pull_request: PullRequest
    since: float
    causes: tuple[str, ...] = ()
    runs: Mapping[ReactionKind, int] = field(default_factory=dict)
    heads: tuple[str, ...] = ()
    reruns: tuple[str, ...] = ()
    reaction: Reaction | None = None
    errands: tuple[Errand, ...] = ()
    merging: str | None = None
    updated: bool = False
    exhausted: ReactionKind | None = None
    over: str | None = None
    former: bool = False

    @property
    def refusal(self) -> str:
        """The name of a cause: the merge of this head was refused until it was given up."""
        return f"{REFUSED}{self.pull_request.head}"
