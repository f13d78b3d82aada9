"""Which runs of an earlier daemon go on, with their agents.

Rule: a run goes on only where nothing is in doubt. Its agent's program is on its host, alive or
with its end kept, and all that it wrote; the settings of now start the same agent there; and
nothing else was planned for its issue. Every other run is ended, and begins again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import trio

from sortie.model import RunId, TransportError
from sortie.scheduler import records as rec
from sortie.scheduler.claims import Running
from sortie.scheduler.memory import TakenOver
from sortie.store import Recovered, UnfinishedRun
from sortie.transports.kept_programs import KeepsPrograms

if TYPE_CHECKING:
    from sortie.orchestrator.recovery import Recovery


async def runs_that_go_on(recovery: Recovery, recovered: Recovered) -> Collection[RunId]:
    """Return the runs that go on; their hosts are asked, all at once.

    Raises LeaseLost where a newer leader has one of them.
    """
    by_host: dict[str, list[UnfinishedRun]] = {}
    for run in _undoubted(recovered):
        if recovery.goes_on(run, recovered.rules.get(run.issue.id, "")):
            by_host.setdefault(run.host, []).append(run)
    found: set[RunId] = set()
    failures: list[Exception] = []

    async def ask(host: str, runs: Sequence[UnfinishedRun]) -> None:
        transport = recovery.transport_of(host)
        if not isinstance(transport, KeepsPrograms) or not transport.keeps_programs:
            return
        named = {run.turn.program: run.run_id for run in runs if run.turn is not None}
        try:
            found.update(named[name] for name in await transport.kept(list(named)))
        except TransportError:
            pass  # what is there is ended when the host can be asked again
        except Exception as exc:  # not passed on: the nursery would wrap it
            failures.append(exc)

    async with trio.open_nursery() as nursery:
        for host, runs in by_host.items():
            nursery.start_soon(ask, host, runs)
    for failure in failures:
        raise failure
    return found


def _undoubted(recovered: Recovered) -> list[UnfinishedRun]:
    """Return the runs with a turn that can go on, for whose issues nothing else was planned."""
    planned = {retry.issue.id for retry in recovered.retries}
    planned |= {hold.issue.id for hold in recovered.holds}
    planned |= {crash.issue.id for crash in recovered.crashes}
    return [
        run
        for run in recovered.unfinished
        if run.turn is not None and run.workspace is not None and run.issue.id not in planned
    ]


def taken_over(run: UnfinishedRun, recovered: Recovered, *, now: float, wall: float) -> TakenOver:
    """Return a run as the scheduler goes on with it; ``now`` is monotonic, ``wall`` Unix time."""
    turn = run.turn
    assert turn is not None
    assert run.workspace is not None
    seconds = max(0.0, wall - run.began)
    claim = Running(
        issue=turn.issue,
        run_id=run.run_id,
        streak=run.streak,
        host=run.host,
        since=now - seconds,
        rule=recovered.rules.get(run.issue.id, ""),
        began_in=turn.issue.state,
        turns=turn.number,
        taken_over=f"from {turn.daemon} in turn {turn.number}",
    )
    return TakenOver(
        claim=claim,
        turn=turn,
        workspace=run.workspace,
        seconds=seconds,
        turn_seconds=max(0.0, wall - run.turn_at),
        spent=run.spent,
    )


def record_of_takeover(taken: TakenOver) -> rec.RecordTakeOver:
    """Return what must be on disk of a run that goes on."""
    run_id = taken.claim.run_id
    return rec.RecordTakeOver(run_id=run_id, daemon=taken.turn.daemon, turn=taken.turn.number)
