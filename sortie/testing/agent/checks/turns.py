"""Turns that come to their own end."""

from __future__ import annotations

import trio

from sortie.model import ErrorKind, TurnOutcome
from sortie.model.turns import NOTIFICATION_LIMIT, Notification
from sortie.testing.agent.check import check
from sortie.testing.agent.scenarios import Scenario
from sortie.testing.agent.subject import AgentRefusal, Subject, ending_text, refusal_of
from sortie.testing.agent.turn_record import TurnRecord
from sortie.testing.checks import NotKept, NotTried, require

_LONG = 300_000  # characters: more than one argument of a program may have
_ODD = "--help\x00 \ud800 \x1b[2J $(touch was-run) `touch was-run`; touch was-run\r\n%s {0} \u2028"


@check("turn.success", "a success is a completed turn without an error, and something was said")
async def success(subject: Subject) -> None:
    """The launch is the first event; once the session is left its process is gone."""
    result, record = await subject.only_turn("success")

    require(result.outcome is TurnOutcome.COMPLETED, ending_text(result))
    require(record.pid > 0, "no process was given")
    require(record.messages, "no message of the agent was sent")


@check("turn.failure", "a failure is a result with kind and message, and raises nothing")
async def failure(subject: Subject) -> None:
    """Which kind is the adapter's own matter."""
    result, _ = await subject.only_turn("failure")

    require(result.outcome is TurnOutcome.FAILED, ending_text(result))


@check("turn.unproven", "a turn counts as completed only where its success is proven")
async def unproven(subject: Subject) -> None:
    """An end in good order alone proves nothing."""
    result, _ = await subject.only_turn("unproven")

    require(result.outcome is TurnOutcome.FAILED, ending_text(result))


@check("turn.usage-limit", "a usage limit has the kind usage_limit")
async def usage_limit(subject: Subject) -> None:
    """It is no failure of the issue's: dispatch pauses instead."""
    result, _ = await subject.only_turn("usage-limit")

    require(result.error_kind is ErrorKind.USAGE_LIMIT, ending_text(result))
    until = result.resets_at
    require(until is None or until.tzinfo is not None, f"resets_at has no zone: {until}")


@check("turn.series", "turns of a session follow one another, also after one that failed")
async def series(subject: Subject) -> None:
    """Each has its own launch and its own result."""
    good, bad = subject.scenario("success"), subject.scenario("failure")
    outcomes = []
    async with subject.session(good) as session:
        for prompt in (good.prompt, bad.prompt, good.prompt):
            result, _ = await subject.turn(session, prompt)
            outcomes.append(result.outcome)

    expected = [TurnOutcome.COMPLETED, TurnOutcome.FAILED, TurnOutcome.COMPLETED]
    require(outcomes == expected, f"the turns ended as {', '.join(outcomes)}")


@check("turn.one-at-a-time", "a second turn beside another of its session is a RuntimeError")
async def one_at_a_time(subject: Subject) -> None:
    """The first one goes on."""
    scenario, first = subject.scenario("hang", "tool"), TurnRecord()
    refused = False
    async with subject.session(scenario) as session, trio.open_nursery() as nursery:
        nursery.start_soon(subject.turn, session, scenario.prompt, first)
        await first.until(first.launched, "it was launched")
        with trio.move_on_after(subject.slack):
            try:
                await session.run_turn(scenario.prompt, TurnRecord())
            except RuntimeError:
                refused = True
        running = not first.over.is_set()
        nursery.cancel_scope.cancel()

    require(refused, "a second turn was taken while the first one ran")
    require(running, "the second turn ended the first one")


@check("turn.two-sessions", "one adapter serves a turn that succeeds while another one hangs")
async def two_sessions(subject: Subject) -> None:
    """Sessions know nothing of each other."""
    hang, good, hanging = (
        subject.scenario("hang", "tool"),
        subject.scenario("success"),
        TurnRecord(),
    )
    agent = subject.agent()
    async with (
        subject.session(hang, agent=agent) as one,
        subject.session(good, agent=agent) as other,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(subject.turn, one, hang.prompt, hanging)
        await hanging.until(hanging.launched, "it was launched")
        result, _ = await subject.turn(other, good.prompt)
        still = not hanging.over.is_set()
        nursery.cancel_scope.cancel()

    require(result.outcome is TurnOutcome.COMPLETED, ending_text(result))
    require(still, "the end of one session's turn ended the other one's")


@check("turn.long-prompt", "a prompt of 300,000 characters reaches the agent")
async def long_prompt(subject: Subject) -> None:
    """It is longer than an argument of a program may be."""
    scenario = _stand_in(subject)
    async with subject.session(scenario) as session:
        result, _ = await subject.turn(session, f"{'word ' * (_LONG // 5)}\n{scenario.prompt}")

    require(result.outcome is TurnOutcome.COMPLETED, ending_text(result))


@check("turn.odd-prompt", "a prompt is text: no option, no shell, and no character breaks it")
async def odd_prompt(subject: Subject) -> None:
    """NUL, half a surrogate, escapes, and words that a shell would obey."""
    scenario = _stand_in(subject)
    end: object = None
    async with subject.session(scenario) as session:
        try:
            end, _ = await subject.turn(session, f"{_ODD}\n{scenario.prompt}")
        except NotKept:
            raise
        except Exception as error:
            end = refusal_of(error)
    run = await subject.transport.files.read_file(subject.workspace, "was-run", 1)

    require(run is None, "words of the prompt were run by a shell")
    require(
        not isinstance(end, AgentRefusal) or end.kind is not ErrorKind.AGENT_NOT_FOUND,
        "no agent found",
    )


@check("turn.long-text", "no notification is empty or longer than 500 characters")
async def long_text(subject: Subject) -> None:
    """What is longer is cut."""
    _, record = await subject.only_turn("long-text")

    longest = max((len(e.message) for e in record.events if isinstance(e, Notification)), default=0)
    within = NOTIFICATION_LIMIT // 2 < longest <= NOTIFICATION_LIMIT
    require(within, f"the longest notification has {longest} characters")


def _stand_in(subject: Subject) -> Scenario:
    if not subject.has_stand_in:
        raise NotTried("a real model would be asked for nothing that it could do")
    return subject.scenario("success")
