"""The settings of ``reactions``: what follows from what happens to a pull request.

A reaction whose block is absent is off.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sortie.config.authors import Authors
from sortie.config.block import Block
from sortie.config.values import (
    Line,
    choice,
    milliseconds,
    whole,
)
from sortie.model.pull_requests import MergeMethod

MOST_RUNS = 100

Runs = Annotated[int, whole(1, MOST_RUNS)]


class ChecksReaction(Block):
    """A run for each head at which a required check, or one of ``names``, has failed."""

    max_runs: Runs = 2
    max_log_lines: Annotated[int, whole(0, 10_000)] = 100
    names: tuple[Line, ...] = ()
    rerun: bool = False


class ReviewReaction(Block):
    """A run for requested changes and unresolved threads; programs count by name only."""

    max_runs: Runs = 3
    authors: Authors = Field("write", alias="from")
    bots: tuple[Line, ...] = ()
    debounce: Annotated[float, milliseconds(0)] = Field(60.0, alias="debounce_ms")


class ConflictsReaction(Block):
    """A run for a pull request that cannot be merged with its base."""

    max_runs: Runs = 2


class CommandsReaction(Block):
    """What people ask for by a comment or a label."""

    max_runs: Runs = 10
    authors: Authors = Field("write", alias="from")
    label: Line = "sortie:fix"


class MergeRequirements(Block):
    """What a merge by Sortie needs beyond what the forge itself demands."""

    approvals: Annotated[int, whole(0, 100)] = 1
    checks: tuple[Line, ...] = ()


_STRATEGY = choice("merge", "squash", "rebase")


class MergeReaction(Block):
    """The merge of a pull request for which all that is required is there.

    ``settle`` is how long a head without any check waits for one.
    """

    strategy: Annotated[MergeMethod, _STRATEGY] = "squash"
    require: MergeRequirements = MergeRequirements()
    delete_branch: bool = True
    settle: Annotated[float, milliseconds(0)] = Field(120.0, alias="settle_ms")


class MoveReaction(Block):
    """The state of an issue whose pull request is over."""

    state: Line


class ReactionsSettings(Block):
    """How a pull request is watched until it is merged or closed, and what follows from what."""

    watch_days: Annotated[int, whole(1, 3650)] = 14
    interval: Annotated[float, milliseconds(1000)] = Field(60.0, alias="interval_ms")
    max_interval: Annotated[float, milliseconds(1000)] = Field(900.0, alias="max_interval_ms")
    needs_human_label: Line = "needs-human"
    checks: ChecksReaction | None = None
    review: ReviewReaction | None = None
    conflicts: ConflictsReaction | None = None
    commands: CommandsReaction | None = None
    merge: MergeReaction | None = None
    merged: MoveReaction | None = None
    closed: MoveReaction | None = None

    @property
    def longest_interval(self) -> float:
        """Seconds between two looks at what does not move."""
        return max(self.interval, self.max_interval)

    @property
    def on(self) -> bool:
        """Whether anything follows from anything."""
        blocks = (self.checks, self.review, self.conflicts, self.commands)
        return any((*blocks, self.merge, self.merged, self.closed))
