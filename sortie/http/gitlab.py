"""What is GitLab's own among the services over HTTP: its limits and errors."""

from __future__ import annotations

from sortie.http.budget import BudgetHeaders, Reset
from sortie.http.requests import Provider
from sortie.model import TrackerErrorKind

PROVIDER = Provider(
    name="GitLab",
    kinds={
        # "Resource lock": another request writes the same issue at this moment.
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
