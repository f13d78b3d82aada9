"""Hands a workflow over to another daemon, once none of its runs is under way, or where that can go
on with all that are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from sortie.facts import HandOverBegan, HandOverEnded
from sortie.orchestrator import Orchestrator
from sortie.scheduler.events import StartsSuspended
from sortie.telemetry import Publish

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy

_LOOK = 0.5  # seconds

_REASONS = {
    "drained": "this daemon is being drained: another one takes the workflow over",
    "moved": "the workflow is about to be handed over to another daemon",
}


async def hand_over_when_asked(
    candidacy: Candidacy, orchestrator: Orchestrator, publish: Publish
) -> None:
    """Start no run any more while the workflow is to be handed over, and end the work once none is
    under way."""
    while True:
        wish, reason = candidacy.wish, candidacy.handing_over
        if reason is None:
            await wish.wait()
            continue
        publish(HandOverBegan(reason=reason, running=_running(orchestrator)))
        orchestrator.tell(StartsSuspended(_REASONS[reason]))
        while candidacy.handing_over is not None:
            with trio.move_on_after(_LOOK):
                await candidacy.wish.wait()  # each event is set once
            if candidacy.handing_over == "drained" and candidacy.has_others:
                _let_go(orchestrator)
            if candidacy.handing_over is not None and not _running(orchestrator):
                orchestrator.shut_down()
                return
        orchestrator.tell(StartsSuspended(None))
        publish(HandOverEnded())


def _running(orchestrator: Orchestrator) -> int:
    return sum(1 for _ in orchestrator.snapshot().worked)


def _let_go(orchestrator: Orchestrator) -> None:
    """Leave the runs to the next leader, once it can go on with each of them: what is let go lives
    for some minutes without a daemon."""
    if orchestrator.can_be_let_go == _running(orchestrator):
        orchestrator.let_go()
