"""Processes that the agent leaves behind are ended, and not waited for."""

from __future__ import annotations

import trio

from sortie.model import TurnOutcome, TurnResult
from sortie.testing.agent.check import check
from sortie.testing.agent.subject import Subject, ending_text
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import require


@check("process.leftover", "what the agent leaves behind is gone when its session is left")
async def leftover(subject: Subject) -> None:
    """It has a session and a group of its own."""
    await _leave(subject, "leftover")


@check("process.holder", "a process that holds the agent's output open does not hold up the turn")
async def holder(subject: Subject) -> None:
    """The end of the output would come when that process ends."""
    await _leave(subject, "holder")


async def _leave(subject: Subject, name: str) -> None:
    scenario, record = subject.scenario(name), TurnRecord()
    ends: list[TurnResult] = []

    async def turn() -> None:
        result, _ = await subject.turn(session, scenario.prompt, record)
        ends.append(result)

    with subject.within(30 + subject.stop_bound, "the turn and the end of its session"):
        async with subject.session(scenario) as session, trio.open_nursery() as nursery:
            nursery.start_soon(turn)
            await record.until(record.launched, "it was launched")
            await subject.require_occupants(2, "no second process")
    require(ends[0].outcome is TurnOutcome.COMPLETED, ending_text(ends[0]))
    await subject.require_no_process_left("after the session")
