"""A turn is stopped: by a deadline, a stall, an operator or the end of the daemon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from sortie.agents import Session
from sortie.model import ErrorKind, TurnResult
from sortie.testing.agent.check import check
from sortie.testing.agent.scenarios import Scenario
from sortie.testing.agent.subject import AgentRefusal, Subject, ending_text, refusal_of
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import NotKept, require

LISTENING_TIME = 1.5
"""Seconds for which an agent that hangs is listened to."""

_LISTENS = 2
"""How often; the program may say something as it begins."""

_SOME = 5
"""Signs of life after which an agent counts as one that talks."""

_HURRY_GRACE = 60.0


@check("stop.before-launch", "a turn that is cancelled before it begins starts nothing that stays")
async def before_launch(subject: Subject) -> None:
    """The cancellation is there before the first word of the prompt."""
    scenario = subject.scenario("hang", "tool")
    async with subject.session(scenario) as session:
        with subject.within(subject.stop_bound, "the stop"), trio.CancelScope() as scope:
            scope.cancel()
            await session.run_turn(scenario.prompt, TurnRecord())
    await subject.require_no_process_left("after the session")


@check("stop.at-launch", "a turn is stopped as soon as its process is there")
async def at_launch(subject: Subject) -> None:
    """The agent has said nothing yet."""
    await _stop_once(subject, subject.scenario("hang", "tool"), lambda record: _launched(record))


@check("stop.while-silent", "an agent that says nothing is stopped")
async def while_silent(subject: Subject) -> None:
    """It has been silent for a while, as it is where a deadline or the stall limit ends a turn."""

    async def silent(record: TurnRecord) -> None:
        await _launched(record)
        await trio.sleep(0.5)

    await _stop_once(subject, subject.scenario("hang", "tool"), silent)


@check("stop.while-talking", "an agent that never stops talking is stopped")
async def while_talking(subject: Subject) -> None:
    """Its output is no reason to wait."""

    async def talking(record: TurnRecord) -> None:
        await _launched(record)
        while record.batches < _SOME and not record.over.is_set():
            await trio.sleep(0.01)

    await _stop_once(subject, subject.scenario("talk"), talking)


@check("stop.in-a-tool", "a tool in a session of its own is ended with its turn")
async def in_a_tool(subject: Subject) -> None:
    """A signal to the agent's group would not reach it."""
    await _stop_with_tool(subject, "tool")


@check("stop.orphan", "a process that has lost its parent is ended with its turn or session")
async def orphan(subject: Subject) -> None:
    """Nothing but its environment and its directory tell where it comes from."""
    await _stop_with_tool(subject, "orphan")


@check("stop.deaf", "an agent that heeds neither requests nor SIGTERM is ended")
async def deaf(subject: Subject) -> None:
    """Within the grace time for the one and for the other."""

    async def spoken_to(record: TurnRecord) -> None:
        await _launched(record)
        await trio.sleep(0.5)

    await _stop_once(subject, subject.scenario("deaf"), spoken_to)


@check("stop.hurry", "the daemon's second signal shortens the grace time of a stop under way")
async def hurry(subject: Subject) -> None:
    """The grace time would be a minute."""
    scenario, record = subject.scenario("deaf"), TurnRecord()
    with subject.within(5 + subject.slack, "the hurried stop"):
        async with trio.open_nursery() as life:

            async def session() -> None:
                async with subject.session(scenario, stop_grace=_HURRY_GRACE) as session:
                    await subject.turn(session, scenario.prompt, record)

            life.start_soon(session)
            await record.until(record.launched, "it was launched")
            await trio.sleep(0.5)
            subject.transport.hurry()
            life.cancel_scope.cancel()


@check(
    "stop.session-left", "leaving a session ends its turn as turn_cancelled, and no other begins"
)
async def session_left(subject: Subject) -> None:
    """It may be left before, during and after a turn."""
    scenario, record = subject.scenario("hang", "tool"), TurnRecord()
    results: list[TurnResult | AgentRefusal] = []

    async def turn(session: Session, record: TurnRecord) -> None:
        try:
            result, _ = await subject.turn(session, scenario.prompt, record)
            results.append(result)
        except NotKept:
            raise
        except Exception as error:
            results.append(refusal_of(error))

    async with subject.session(scenario):
        pass
    with subject.within(2 * subject.stop_bound, "leaving the session"):
        async with trio.open_nursery() as nursery, subject.session(scenario) as session:
            nursery.start_soon(turn, session, record)
            await record.until(record.launched, "it was launched")
        await subject.require_no_process_left("after the session")
        await turn(session, TurnRecord())
    for end in results:
        require(not isinstance(end, AgentRefusal) and _is_cancelled(end), ending_text(end))


@check("stop.next-turn", "a session whose turn was stopped goes on, or says that it cannot")
async def next_turn(subject: Subject) -> None:
    """The next turn has an end; what it is, is the adapter's own matter."""
    scenario, good = subject.scenario("hang", "tool"), subject.scenario("success")
    async with subject.session(scenario) as session:
        await _stop(subject, session, scenario, _launched)
        with subject.within(60 + subject.stop_bound, "the next turn"):
            try:
                await subject.turn(session, good.prompt)
            except NotKept:
                raise
            except Exception as error:
                refusal_of(error)


@check("stall.silence", "while the agent is silent no event is sent, so that a stall is noticed")
async def silence(subject: Subject) -> None:
    """An adapter that ticks by itself would hide it."""
    scenario, record = subject.scenario("hang"), TurnRecord()
    async with subject.session(scenario) as session, trio.open_nursery() as nursery:
        nursery.start_soon(subject.turn, session, scenario.prompt, record)
        await _launched(record)
        quiet = False
        for _ in range(_LISTENS):
            before = record.batches
            await trio.sleep(LISTENING_TIME)
            quiet = quiet or record.batches == before
        nursery.cancel_scope.cancel()

    require(quiet, f"an event was sent at least every {LISTENING_TIME:g} s")


@check("stall.life", "all output is a sign of life, wherever it goes")
async def life(subject: Subject) -> None:
    """A mebibyte comes in many chunks, and no chunk is kept back until the end."""
    _, record = await subject.only_turn("noise")

    require(record.batches > 10, f"on_events was called {record.batches} times")


async def _stop_with_tool(subject: Subject, name: str) -> None:
    async def runs(record: TurnRecord) -> None:
        await _launched(record)
        await subject.require_occupants(2, "the tool's process did not begin")

    await _stop_once(subject, subject.scenario(name), runs)


async def _launched(record: TurnRecord) -> None:
    await record.until(record.launched, "it was launched")


async def _stop_once(
    subject: Subject, scenario: Scenario, ready: Callable[[TurnRecord], Awaitable[None]]
) -> None:
    """Stop a turn in a session of its own; the session is left in time, and no process is left."""
    async with subject.session(scenario) as session:
        await _stop(subject, session, scenario, ready)
    await subject.require_no_process_left("after the session")


async def _stop(
    subject: Subject,
    session: Session,
    scenario: Scenario,
    ready: Callable[[TurnRecord], Awaitable[None]],
) -> None:
    """Cancel a turn once it is ready for that; where it has a result, that is turn_cancelled."""
    record, results = TurnRecord(), list[TurnResult]()

    async def turn() -> None:
        result, _ = await subject.turn(session, scenario.prompt, record)
        results.append(result)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        await ready(record)
        began = trio.current_time()
        nursery.cancel_scope.cancel()
    seconds = trio.current_time() - began
    bound = subject.stop_bound
    require(seconds <= bound, f"the stop took {seconds:.1f} s, and may take {bound:g} s")
    record.require_well_formed()
    for result in results:
        require(_is_cancelled(result), f"the stopped turn ended as {ending_text(result)}")


def _is_cancelled(result: TurnResult) -> bool:
    return result.error_kind is ErrorKind.TURN_CANCELLED
