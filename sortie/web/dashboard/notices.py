"""How the daemon is, in a word and a sentence, and what a viewer should know first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Literal

from msgspec import Struct

from sortie.web.dashboard.activity import PollView
from sortie.web.health import Health
from sortie.web.state import StateView

_STOPPING_REASON = "the daemon is stopping"


class StatusNotice(Struct, frozen=True):
    """Something to know; ``until`` is when it ends, where that is known."""

    level: Literal["bad", "warn"]
    title: str
    lines: tuple[str, ...] = ()
    until: datetime | None = None


class OverallStatus(Struct, frozen=True):
    """The daemon in a word and a sentence, with the picture and the colour that go with it."""

    word: str
    sentence: str
    icon: str
    level: Literal["good", "warn", "bad", "quiet"]
    poll: PollView | None
    notices: tuple[StatusNotice, ...]


def status_of(state: StateView, health: Health, poll: PollView | None) -> OverallStatus:
    """Return how the daemon is."""
    notices = tuple(_notices(state, health, poll))
    if state.status == "draining":
        word = ("Stopping", "runs under way are being ended", "stop", "warn")
    elif state.status == "paused":
        word = ("Paused", "no run is started until somebody resumes it", "pause", "warn")
    elif not health.ready:
        word = ("Not ready", "it cannot do its work as it should", "bad", "bad")
    elif state.usage_limit is not None or state.today.exhausted is not None:
        word = ("Waiting", "no run is started for now", "wait", "warn")
    elif state.running:
        word = ("Working", _sentence(state), "run", "good")
    else:
        word = ("Idle", "nothing runs", "ok", "quiet")
    return OverallStatus(*word, poll=poll, notices=notices)  # type: ignore[arg-type]


def _sentence(state: StateView) -> str:
    count = state.counts.running
    return "on one issue" if count == 1 else f"on {count:,} issues"


def _notices(state: StateView, health: Health, poll: PollView | None) -> Iterator[StatusNotice]:
    if not state.workflow.valid:
        title = f"{state.workflow.path} is not valid; the settings before it are in force"
        yield StatusNotice("bad", title, state.workflow.errors)
    tracker = state.tracker
    shown = {_STOPPING_REASON}
    if tracker.rests_until is not None:
        because = () if tracker.rests_because is None else (tracker.rests_because,)
        yield StatusNotice(
            "bad", "The tracker is left alone; it is asked again", because, tracker.rests_until
        )
        shown |= {reason for reason in health.reasons if "left alone until" in reason}
        shown |= set(because)
    elif poll is not None and poll.result == "error":
        yield StatusNotice("bad", "The tracker could not be polled", (poll.error or "",))
    if poll is not None and poll.error is not None:
        shown.add(poll.error)
    if reasons := tuple(reason for reason in health.reasons if reason not in shown):
        yield StatusNotice("bad", "It is not ready", reasons)
    if (limit := state.usage_limit) is not None:
        yield StatusNotice("warn", f"Usage limit of {limit.agent}", (limit.reason,), limit.until)
    if state.today.exhausted is not None:
        yield StatusNotice("warn", "The budget of the day is used up", (state.today.exhausted,))
