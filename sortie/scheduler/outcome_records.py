"""Records of what follows from a run: its delivery, what people are asked and told, and more."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import (
    Delivery,
    Issue,
    IssueId,
    RunId,
)
from sortie.model.asked_questions import AskedQuestion
from sortie.model.notifications import Notice
from sortie.model.watches import Watch


class RecordDelivery(Struct, frozen=True, kw_only=True):
    """How far the work of a run has come; replaces what was recorded of it, and of earlier runs of
    the issue nothing is pending any more. ``diff`` is kept where it is given."""

    run_id: RunId
    issue_id: IssueId
    delivery: Delivery
    diff: str | None = None


class SettleDelivery(Struct, frozen=True, kw_only=True):
    """No later run of an issue has a delivery to go on with."""

    issue_id: IssueId


class RecordWatch(Struct, frozen=True, kw_only=True):
    """A pull request of an issue is watched; replaces what was recorded of it."""

    issue: Issue
    watch: Watch


class ForgetWatch(Struct, frozen=True, kw_only=True):
    """No pull request of an issue is watched any more."""

    issue_id: IssueId


class RecordHandoff(Struct, frozen=True, kw_only=True):
    """An issue stands in the handoff state after its newest run."""

    issue: Issue
    state: str


class RecordComment(Struct, frozen=True, kw_only=True):
    """A comment is to be made on an issue when a run is over, until ForgetComment.

    The journal makes it of PostComment, so that it is on disk with the exit that it tells of.
    """

    run_id: RunId
    issue: Issue
    lifecycle: str
    body: str


class ForgetComment(Struct, frozen=True, kw_only=True):
    """A comment was made, or cannot be made."""

    run_id: RunId
    lifecycle: str


class RecordNotification(Struct, frozen=True, kw_only=True):
    """Something is to be told to these targets; one that was told of it before is left out.

    It is made of the decisions of a round, and is on disk with their records.
    """

    notification: Notice
    targets: tuple[str, ...]


class RecordQuestion(Struct, frozen=True, kw_only=True):
    """The newest question of an issue; replaces what was recorded before, until ForgetQuestion.

    It was asked at the commit, and its default counts ``delay`` seconds later; None: never.
    ``again``: it was asked earlier, and only what has become of it is another.
    """

    issue_id: IssueId
    asked: AskedQuestion
    delay: float | None = None
    again: bool = False


class ForgetQuestion(Struct, frozen=True, kw_only=True):
    """An issue is finished; nothing of its questions is needed any more."""

    issue_id: IssueId
