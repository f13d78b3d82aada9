"""What a second session says of a run's work, before a pull request is opened."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

FINDINGS_LIMIT = 50
"""Findings of a review that are kept."""


class ReviewVerdict(StrEnum):
    """What a review comes to."""

    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"
    NONE = "none"
    """The reviewer gave no verdict: nothing was approved."""

    @property
    def words(self) -> str:
        """What it means, for people."""
        return {"approve": "approved", "request_changes": "changes requested"}.get(
            self.value, "no verdict"
        )


class ReviewSeverity(StrEnum):
    """How much a finding matters, as its reviewer says."""

    MUST = "must"
    SHOULD = "should"


class ReviewFinding(Struct, frozen=True, kw_only=True):
    """What a reviewer has found; ``line`` is None where it is about no single one."""

    text: str
    severity: ReviewSeverity = ReviewSeverity.MUST
    path: str = ""
    line: int | None = None

    @property
    def place(self) -> str:
        """Where it is, "" where the reviewer did not say."""
        return f"{self.path}:{self.line}" if self.path and self.line else self.path


class SelfReview(Struct, frozen=True, kw_only=True):
    """The verdict on one commit.

    ``rounds`` is how often the agent was sent back to its work by reviews, in this run and before
    this verdict. ``reason`` is why there is no verdict. ``omitted`` counts the findings beyond
    FINDINGS_LIMIT.
    """

    commit: str
    verdict: ReviewVerdict
    agent: str
    model: str | None = None
    rounds: int = 0
    findings: tuple[ReviewFinding, ...] = ()
    omitted: int = 0
    reason: str = ""
