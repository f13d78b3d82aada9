"""The overview: the daemon on one page, as pieces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nsmallest
from typing import Literal

from msgspec import Struct

from sortie.model import LOCAL
from sortie.web.dashboard.activity import ActivityView, PastRun, PollView
from sortie.web.dashboard.charts import charts
from sortie.web.dashboard.pieces import Part, Piece, PieceList, pieces_of
from sortie.web.health import Health
from sortie.web.issue import CandidateView, FailureView, HeldView, RunningView, WaitingView
from sortie.web.state import HostView, RuleSlotsView, StateView, TrackerView

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
    untold = tuple(one.trouble for one in state.notifications if one.trouble is not None)
    if untold:
        yield StatusNotice("warn", "Notifications do not arrive", untold)


RUNNING, WAITING, HELD, WATCHED = 200, 25, 50, 12
"""How many issues of each kind the overview shows; ``/lists`` has them all."""


@dataclass(frozen=True, slots=True)
class RunWords:
    """What a run said last, and when."""

    last_message: str | None
    note: str | None
    tool: str | None
    last_event_at: datetime
    last_failure: FailureView | None


@dataclass(frozen=True, slots=True)
class HostLoad:
    """Runs on a host; ``slots`` is None where it has no limit of its own, and ``trouble`` what is
    known of a host that is down."""

    host: str
    used: int
    slots: int | None
    trouble: HostView | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """Where runs are, what is free in states with a limit, and what share each rule has."""

    hosts: tuple[HostLoad, ...]
    by_state: tuple[tuple[str, int], ...]
    by_rule: tuple[RuleSlotsView, ...]


@dataclass(frozen=True, slots=True)
class KeptIssue:
    """An issue that nothing is done about: ``queued`` for room, or else blocked."""

    candidate: CandidateView
    queued: bool


def board(state: StateView, health: Health, activity: ActivityView) -> tuple[Part, ...]:
    """Return the parts of the overview."""
    counts = state.counts
    kept = (*kept_rows(state.queued, queued=True), *kept_rows(state.blocked, queued=False))
    handed = tuple(
        Piece(f"o:{each.issue_identifier}", "handed_off", each) for each in activity.handed_off
    )
    ended = run_rows(activity.runs)
    return (
        Piece("status", "status", status_of(state, health, activity.poll)),
        Piece("controls", "controls", state.status),
        Piece("summary", "summary", (counts, state.slots, state.today)),
        *_list("held", counts.held, held_rows(state)[:HELD], "nothing is held"),
        *_list("watched", counts.watched, watched_rows(state)[:WATCHED], "nothing is watched"),
        *_list("handed", len(handed), handed, "nothing was handed off lately"),
        *_list("running", counts.running, running_rows(state)[:RUNNING], "nothing runs"),
        *_list("waiting", counts.waiting, first_waiting(state, WAITING), "nothing waits"),
        *_list(
            "queue",
            counts.queued + counts.blocked,
            kept,
            "nothing is queued or blocked",
        ),
        *_list("ended", len(ended), ended, "no run has ended yet"),
        Piece("charts", "charts", charts(activity.buckets)),
        Piece("capacity", "capacity", _capacity(state)),
        Piece("tracker", "tracker", _tracker(state.tracker)),
        Piece("daemons", "daemons", (state.lease, state.daemons)),
    )


def status_word(parts: tuple[Part, ...]) -> str:
    """Return the one word of the status."""
    words = (p.content.word for p in pieces_of(parts) if isinstance(p.content, OverallStatus))
    return next(words)


def running_rows(state: StateView) -> tuple[Piece, ...]:
    """Return all runs under way, the oldest first."""
    rows: list[RunningView] = sorted(state.running, key=lambda r: (r.started_at, r.issue_id))
    return tuple(map(_running, rows))


def _running(row: RunningView) -> Piece:
    # The words change all the time, the rest of the row with each turn.
    words = RunWords(row.last_message, row.note, row.tool, row.last_event_at, row.last_failure)
    still = replace(row, last_message=None, note=None, tool=None, last_event_at=row.started_at)
    said = Piece(f"s:{row.run_id}", "run_words", words)
    return Piece(f"r:{row.run_id}", "running", still, said)


def held_rows(state: StateView) -> tuple[Piece, ...]:
    """Return all held issues, the newest first."""
    rows: list[HeldView] = sorted(state.held, key=lambda h: (h.since, h.issue_id), reverse=True)
    return tuple(Piece(f"h:{row.issue_id}", "held", row) for row in rows)


def watched_rows(state: StateView) -> tuple[Piece, ...]:
    """Return all watched pull requests, those that need a person first."""
    return tuple(Piece(f"p:{row.issue_id}", "watched", row) for row in state.watched)


def run_rows(runs: Iterable[PastRun]) -> tuple[Piece, ...]:
    """Return past runs, in the order given."""
    return tuple(Piece(f"e:{run.run_id}", "past_run", run) for run in runs)


def kept_rows(candidates: tuple[CandidateView, ...], *, queued: bool) -> tuple[Piece, ...]:
    """Return issues that nothing is done about, in the order in which they are served."""
    return tuple(
        Piece(f"q:{each.issue_id}", "kept", KeptIssue(each, queued)) for each in candidates
    )


def first_waiting(state: StateView, limit: int) -> tuple[Piece, ...]:
    """Return the issues that are due first."""
    rows: list[WaitingView] = nsmallest(limit, state.waiting, lambda w: (w.due_at, w.issue_id))
    return tuple(Piece(f"w:{row.issue_id}", "waiting", row) for row in rows)


def _list(name: str, count: int, pieces: tuple[Piece, ...], nothing: str) -> tuple[Part, Part]:
    rows = pieces or (Piece(f"no-{name}", "nothing", nothing),)
    shown = len(pieces)
    return (
        Piece(f"count-{name}", "count", (shown, count)),
        PieceList(f"{name}-rows", rows),
    )


def _capacity(state: StateView) -> Capacity:
    remote = tuple(
        HostLoad(view.host, view.used, view.slots, None if view.up else view)
        for view in state.hosts
    )
    here = sum(row.host == LOCAL for row in state.running)
    free = state.slots.by_host.get(LOCAL)
    local: tuple[HostLoad, ...] = ()
    if here or not remote or free is not None:
        most = here + free if free is not None else None if remote else state.slots.total
        local = (HostLoad(LOCAL, here, most),)
    slots = state.slots
    return Capacity(
        hosts=(*local, *remote), by_state=tuple(slots.by_state.items()), by_rule=slots.by_rule
    )


def _tracker(tracker: TrackerView) -> TrackerView:
    """Leave out what the status says."""
    return TrackerView(
        unreadable=tracker.unreadable,
        unnamed_states=tracker.unnamed_states,
        budgets=tracker.budgets,
        webhooks=tracker.webhooks,
    )
