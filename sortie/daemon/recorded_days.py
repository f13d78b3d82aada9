"""What the event log tells of the runs of the last days: when issues came, and what ran when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from sortie.model import Issue, RunId, RunReport
from sortie.scheduler import Policy, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.telemetry.event_log.entries import Incident, decoded_checkpoint
from sortie.telemetry.event_log.reader import Segment, read_segment, stored_segments


class RecordedRun(Struct, kw_only=True):
    """A run: where it began at ``at``, in Unix seconds; one that was under way at the beginning of
    the stretch has begun at that. Without a ``report`` it had not ended at the end."""

    run_id: RunId
    issue: Issue
    policy: Policy
    host: str
    at: float
    seconds: float | None = None
    report: RunReport | None = None


class Stretch(Struct, kw_only=True):
    """Time without a gap; times are Unix seconds, ``offset`` more than the scheduler's.

    ``polls`` are what polls found, and when.
    """

    offset: float
    begin: float
    end: float
    polls: list[tuple[float, tuple[Issue, ...]]] = field(default_factory=list)
    runs: list[RecordedRun] = field(default_factory=list)


def stretches(path: str, since: float) -> Iterator[Stretch]:
    """Yield what is recorded since a time, divided by the gaps. Raises EventLogError."""
    found: list[Segment] = []
    for file in stored_segments(path):
        segment = read_segment(path, file)
        if found and not segment.header.follows:
            yield from _stretch(found, since)
            found = []
        found.append(segment)
    if found:
        yield from _stretch(found, since)


def _stretch(segments: Sequence[Segment], since: float) -> Iterator[Stretch]:
    """Go through segments that follow each other, but those that are over before a time."""
    ends = [following.header.at for following in segments[1:]]
    ends.append(float("inf"))
    wanted = [each for each, end in zip(segments, ends, strict=True) if end > since]
    if not wanted:
        return
    first = wanted[0]
    stretch = Stretch(
        offset=first.offset,
        begin=first.header.at,
        end=first.header.at,
    )
    scheduler = Scheduler.restored(decoded_checkpoint(first.header))
    under_way = _under_way(scheduler, stretch)
    for segment in wanted:
        for incident in segment.incidents():
            _happen(scheduler, incident, stretch, under_way)
    yield stretch


def _under_way(scheduler: Scheduler, stretch: Stretch) -> dict[RunId, RecordedRun]:
    snapshot = scheduler.snapshot(stretch.begin - stretch.offset)
    for claim in snapshot.worked:
        run = RecordedRun(
            run_id=claim.run_id,
            issue=claim.issue,
            policy=snapshot.policy.of_rule(claim.rule),
            host=claim.host,
            at=stretch.begin,
        )
        stretch.runs.append(run)
    return {run.run_id: run for run in stretch.runs}


def _happen(
    scheduler: Scheduler,
    incident: Incident,
    stretch: Stretch,
    under_way: dict[RunId, RecordedRun],
) -> None:
    event, at = incident.event, incident.now + stretch.offset
    stretch.end = at
    if isinstance(event, ev.CandidatesFetched):
        stretch.polls.append((at, event.issues))
    elif isinstance(event, ev.WorkerExited) and (run := under_way.get(event.run_id)) is not None:
        run.seconds, run.report = at - run.at, event.report
    for decision in scheduler.handle(event, incident.now):
        if isinstance(decision, do.StartWorker):
            snapshot = scheduler.snapshot(incident.now)
            run = RecordedRun(
                run_id=decision.run_id,
                issue=decision.issue,
                policy=snapshot.policy.of_rule(snapshot.rules.get(decision.issue.id, "")),
                host=decision.host,
                at=at,
            )
            stretch.runs.append(run)
            under_way[run.run_id] = run
