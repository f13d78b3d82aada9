"""What is GitLab's own among the trackers over HTTP: its limits, errors and routes."""

from __future__ import annotations

from msgspec import Struct

from sortie.model import TrackerErrorKind
from sortie.trackers.http.budget import BudgetHeaders, Reset
from sortie.trackers.http.client import segment
from sortie.trackers.http.requests import Provider

PAGE = 100
"""Items of a page, and issues that are asked for at a time; GitLab gives no more."""

PROVIDER = Provider(
    name="GitLab",
    kinds={
        # "Resource lock": somebody else writes the same issue at this moment.
        409: TrackerErrorKind.UNAVAILABLE,
        # An issue or a project is 404; what is gone for good is a route of the API.
        410: TrackerErrorKind.CLOSED,
    },
    budgets=(
        BudgetHeaders(
            limit="ratelimit-limit",
            remaining="ratelimit-remaining",
            reset="ratelimit-reset",
            unit=Reset.EPOCH_SECONDS,
            name="requests",
        ),
    ),
)


class GitLabScope(Struct, frozen=True, kw_only=True):
    """What is worked on: a project or a group, by its number once that is known, or its path."""

    name: str
    is_group: bool = False
    number: int | None = None

    @property
    def path(self) -> str:
        """Return the beginning of its routes."""
        return f"/{'groups' if self.is_group else 'projects'}/{segment(self.number or self.name)}"
