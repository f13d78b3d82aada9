"""One attempt at an issue: workspace, hooks, session, turns; then everything is gone again.

Rule 1: a worker returns, or is cancelled, only when its processes are gone and ``after_run`` ran.
Rule 2: a worker keeps the settings it started with; only which states are active may change.
"""

from sortie.worker.context import (
    Assignment,
    RemoteRepository,
    ReviewerAgent,
    RunContext,
    RunReporter,
    RunScopes,
)
from sortie.worker.work import work

__all__ = [
    "Assignment",
    "RemoteRepository",
    "ReviewerAgent",
    "RunContext",
    "RunReporter",
    "RunScopes",
    "work",
]
