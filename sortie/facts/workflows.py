"""Facts about the workflows that share a process, or slots with those of other daemons."""

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


@fact("slots.unknown", "warning")
class CommonSlotsUnknown(Fact, frozen=True, kw_only=True):
    """This daemon cannot tell the others of the database what it uses of the common slots, nor hear
    what it may use. Once that has lasted for the length of a lease, it starts no run."""

    error: str


@fact("slots.known", "info")
class CommonSlotsKnown(Fact, frozen=True):
    """This daemon hears again what it may use of the common slots."""
