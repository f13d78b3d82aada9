"""Facts about the workflows that share a process."""

from __future__ import annotations

from sortie.facts.fact import Fact, fact


@fact("workflow.broken", "error")
class WorkflowBroken(Fact, frozen=True, kw_only=True):
    """A workflow cannot start, or has crashed, while the others of its process go on. It is tried
    again when its file changes, and after so many seconds, where that may help."""

    error: str
    seconds: float | None = None


@fact("slots.overcommitted", "warning")
class SlotsOvercommitted(Fact, frozen=True, kw_only=True):
    """The workflows of a process are guaranteed more slots together than it has; the first of them
    have what they are guaranteed."""

    guaranteed: int
    slots: int
