"""What the outside world tells the scheduler of watched pull requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from sortie.model import IssueId
from sortie.model.pull_requests import PullRequestState


class PullRequestsSeen(Struct, frozen=True):
    """Watched pull requests were looked at. One that was asked for and is not in ``seen`` is gone.
    ``writers`` are those among their authors who may push. ``error``: none could be seen, and the
    forge wants to be left alone for ``pause`` seconds."""

    token: int
    asked: frozenset[IssueId]
    seen: Mapping[IssueId, PullRequestState]
    writers: frozenset[str] = frozenset()
    error: str | None = None
    pause: float = 0.0


class ErrandDone(Struct, frozen=True):
    """The first errand of a watch was tried; ``error`` is None where it is done. ``again``: it is
    to be tried again, as the service is in trouble."""

    issue_id: IssueId
    token: int
    error: str | None = None
    again: bool = False


MergeOutcome = Literal["merged", "queued", "updated", "not_ready", "refused", "failed"]


class MergeTried(Struct, frozen=True):
    """A merge was tried: it was ``merged``, ``queued`` at the forge, or its branch ``updated``; it
    was ``not_ready`` when looked at again, ``refused`` by the forge, or the forge ``failed``."""

    issue_id: IssueId
    token: int
    outcome: MergeOutcome
    message: str = ""
