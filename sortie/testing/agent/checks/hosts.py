"""The host fails: it cannot be asked, starts nothing, is lost in mid-turn, or keeps processes."""

from __future__ import annotations

import trio
from msgspec.structs import replace

from sortie.model import ErrorKind, ProcessesLeft, TurnOutcome, TurnResult
from sortie.testing.agent.check import check
from sortie.testing.agent.faulty_transport import Faults, FaultyTransport, link_lost
from sortie.testing.agent.scenarios import Scenario
from sortie.testing.agent.subject import AgentRefusal, Subject, ending_text, refusal_of
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import require

_ANY = Scenario(prompt="Answer OK.")


@check("host.unreachable", "a host that cannot be asked is no missing program and no bad workspace")
async def unreachable(subject: Subject) -> None:
    """Both would hold the issue, though nothing is wrong with it."""
    for fault in (Faults(looking=link_lost()), Faults(resolving=link_lost())):
        end = await _faulty(subject, fault).attempt(_ANY)
        innocent = (ErrorKind.AGENT_NOT_FOUND, ErrorKind.INVALID_WORKSPACE_CWD)
        require(isinstance(end, AgentRefusal) and end.kind not in innocent, ending_text(end))


@check("host.starts-nothing", "a program that cannot be started is an error, and no crash")
async def starts_nothing(subject: Subject) -> None:
    """The session is refused, or the turn, or the turn has failed."""
    end = await _faulty(subject, Faults(starting=link_lost())).attempt(_ANY)

    require(isinstance(end, AgentRefusal) or end.outcome is TurnOutcome.FAILED, ending_text(end))


@check("host.lost", "a turn whose host is lost is an error or has failed")
async def lost(subject: Subject) -> None:
    """It is neither completed nor cancelled."""
    faults, record = Faults(), TurnRecord()

    async def lose() -> None:
        await record.until(record.launched, "it was launched")
        faults.lost.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lose)
        end = await _end_of_turn(subject, faults, subject.scenario("hang", "tool"), record)
    require(isinstance(end, AgentRefusal) or end.outcome is TurnOutcome.FAILED, ending_text(end))


@check("host.keeps-processes", "processes that could not be ended are reported")
async def keeps_processes(subject: Subject) -> None:
    """Another turn would run beside them."""
    faults, record = Faults(), TurnRecord()

    async def keep() -> None:
        await record.until(record.launched, "it was launched")
        left = "a process could not be ended (by the check)"
        faults.ending = ProcessesLeft(left, pids=frozenset({1}))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep)
        end = await _end_of_turn(subject, faults, subject.scenario("success"), record)
    require(isinstance(end, AgentRefusal) or end.outcome is TurnOutcome.FAILED, ending_text(end))


async def _end_of_turn(
    subject: Subject, faults: Faults, scenario: Scenario, record: TurnRecord
) -> TurnResult | AgentRefusal:
    """Have one turn on a host with faults, in a bounded time; return how it, or else its session,
    ended."""
    with subject.within(60 + 2 * subject.stop_bound, "the end of the turn and its session"):
        try:
            async with _faulty(subject, faults).session(scenario) as session:
                result, _ = await subject.turn(session, scenario.prompt, record)
        except Exception as error:
            return refusal_of(error)
        finally:
            record.over.set()
    return result


def _faulty(subject: Subject, faults: Faults) -> Subject:
    return replace(subject, transport=FaultyTransport(subject.transport, faults))
