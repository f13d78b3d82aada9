"""The views of watched pull requests, made from how they stand with the scheduler; pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from sortie.daemon.wall_time import wall_time
from sortie.model.watches import Reaction
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.watch_standing import WatchExplanation, WatchStanding
from sortie.web.watches import (
    CAUSES_SHOWN,
    GateAnswer,
    UsedRunsView,
    WatchedView,
    WatchView,
    cause_text,
)


def watched_view(standing: WatchStanding) -> WatchedView:
    """Return a watched pull request."""
    issue, watch = standing.issue, standing.watch
    request = watch.pull_request
    return WatchedView(
        issue_id=issue.id,
        issue_identifier=issue.identifier,
        title=issue.shown_title,
        stage=standing.stage.value,
        number=request.number,
        pull_request=request.url,
        branch=request.branch,
        since=datetime.fromtimestamp(watch.since, UTC),
        waits_for=standing.waits_for,
        next_look_at=None if standing.next_at is None else wall_time(standing.next_at),
        runs={kind.value: count for kind, count in watch.runs.items()},
        reaction=() if watch.reaction is None else watch.reaction.words,
        exhausted=None if watch.exhausted is None else watch.exhausted.value,
        held=standing.held,
        merging=watch.merging is not None,
        queued=standing.queued,
        rule=standing.rule or None,
    )


def watch_view(found: WatchExplanation) -> WatchView:
    """Return a watched pull request with what decides about it."""
    watch = found.standing.watch
    return WatchView(
        standing=watched_view(found.standing),
        title=watch.pull_request.title,
        head=watch.pull_request.head,
        draft=watch.pull_request.draft,
        gates=gate_answers(found.gates),
        runs=tuple(
            UsedRunsView(kind=each.kind.value, used=each.used, most=each.most)
            for each in found.runs
        ),
        answers=() if watch.reaction is None else tuple(_answers(watch.reaction)),
        causes=tuple(map(cause_text, watch.causes[-CAUSES_SHOWN:])),
        causes_omitted=max(0, len(watch.causes) - CAUSES_SHOWN),
    )


def _answers(reaction: Reaction) -> Iterator[str]:
    """Yield what a run answers, in a few words each."""
    if reaction.conflicts:
        yield "conflicts with its base"
    for check in reaction.checks:
        yield f"the failed check {check.name}"
    for review in reaction.reviews:
        yield f"changes requested by {review.author}"
    for thread in reaction.threads:
        at = "" if thread.path is None else f" about {thread.path}"
        at += f":{thread.line}" if thread.path is not None and thread.line is not None else ""
        author = f" of {thread.notes[-1].author}" if thread.notes else ""
        yield f"a thread{author}{at}"
    for comment in reaction.comments:
        yield f"a comment of {comment.author}"
    if reaction.labelled:
        yield "a label"


def gate_answers(gates: tuple[GateVerdict, ...]) -> tuple[GateAnswer, ...]:
    """Return gates as they are told."""
    return tuple(
        GateAnswer(gate=each.gate, open=each.reason is None, reason=each.reason) for each in gates
    )
