"""Sessions and their conversations, over real processes of a stand-in."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
import trio
from msgspec.structs import replace

from sortie.agents import AgentContext
from sortie.agents.claude_code import ADAPTER
from sortie.agents.claude_code.settings import CLAUDE_SECRETS
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import ModelAnswered, Notification, SessionKnown, ToolEnded, Usage
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.claude_code.reading import ID
from tests.agents.claude_code.simulated import KEY, Rig
from tests.agents.kiro.simulated import Heard

LIMIT = 60
COMPLETED = TurnResult(outcome=TurnOutcome.COMPLETED)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    become_subreaper()
    return Rig(tmp_path, LocalTransport())


def by(rig: Rig) -> list[tuple[str, str]]:
    """Return how each process was told its conversation."""
    flags = ("--session-id", "--resume")
    return [
        (word, arguments[at + 1])
        for arguments in rig.launches()
        for at, word in enumerate(arguments)
        if word in flags
    ]


async def test_an_id_is_known_before_anything_runs(rig: Rig) -> None:
    """So that it can be stored before it is used; it is a UUID, and another one each time."""
    async with rig.agent().session(rig.params()) as one, rig.agent().session(rig.params()) as two:
        assert UUID(one.id).version == UUID(two.id).version == 4
        assert one.id != two.id
        assert rig.launches() == []


async def test_the_turns_of_a_session_are_one_conversation(rig: Rig) -> None:
    """Begun once and then resumed, also after a turn that failed."""
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params()) as session:
            for prompt in ("claude: fail=1", "Hello", "Hello again"):
                await session.run_turn(prompt, Heard())

            begun, *resumed = by(rig)

            assert begun == ("--session-id", session.id)
            assert resumed == [("--resume", session.id)] * 2


async def test_a_conversation_goes_on_in_the_next_session(rig: Rig) -> None:
    """Also where the turn that began it was killed: its id can never be begun again."""
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params()) as session, trio.open_nursery() as nursery:
            heard, first = Heard(), session.id
            nursery.start_soon(session.run_turn, "claude: hang=1", heard)
            await heard.spoke.wait()
            nursery.cancel_scope.cancel()
        result, _ = await rig.turn("Hello", resume=first)

    assert result == COMPLETED
    assert by(rig) == [("--session-id", first), ("--resume", first)]


async def test_a_conversation_that_nobody_knows_begins_anew(rig: Rig) -> None:
    """In the same turn and under the same id, which is stored already."""
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params(resume=ID)) as session:
            heard = Heard()
            result = await session.run_turn("Hello", heard)
            again = await session.run_turn("Hello", Heard())

            assert (result, again, session.id) == (COMPLETED, COMPLETED, ID)
    assert by(rig) == [("--resume", ID), ("--session-id", ID), ("--resume", ID)]
    assert f"conversation {ID} is gone; it begins anew" in heard.messages


async def test_an_id_that_is_somebody_elses_is_given_up(rig: Rig) -> None:
    """The conversation that has it cannot go on here, so another one begins, and is told."""
    (rig.home / "conversations").mkdir()
    (rig.home / "conversations" / ID).symlink_to("nowhere")  # taken, and nobody can go on with it
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params(resume=ID)) as session:
            heard = Heard()
            result = await session.run_turn("Hello", heard)

            assert (result, session.id != ID) == (COMPLETED, True)
    assert by(rig) == [("--resume", ID), ("--session-id", ID), ("--session-id", session.id)]
    assert SessionKnown(session_id=session.id) in heard.events


async def test_an_id_that_the_agent_changes_is_followed(rig: Rig) -> None:
    """Old versions give a conversation that goes on a new id."""
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params()) as session:
            heard = Heard()
            await session.run_turn(f"claude: rename={ID}", heard)
            assert session.id == ID
            result = await session.run_turn("Hello", Heard())

    assert result == COMPLETED
    assert by(rig)[1] == ("--resume", ID)
    assert SessionKnown(session_id=ID) in heard.events


async def test_without_persistence_no_id_is_kept(rig: Rig) -> None:
    """There is nothing to resume, so that nothing is stored; each turn has an id of its own."""
    agent = rig.agent(session_persistence=False)
    with trio.fail_after(LIMIT):
        async with agent.session(rig.params(resume=ID)) as session:
            await session.run_turn("Hello", Heard())
            await session.run_turn("Hello", Heard())

            assert session.id == ""
    (one, first), (two, second) = by(rig)
    assert (one, two) == ("--session-id", "--session-id")
    assert len({first, second, ID}) == 3


async def test_usage_goes_on_over_the_turns_of_a_session(rig: Rig) -> None:
    """Tokens and cost are sums since it was entered, whatever the conversation had cost before."""
    with trio.fail_after(LIMIT):
        async with rig.agent().session(rig.params()) as session:
            first, second = Heard(), Heard()
            await session.run_turn("Hello", first)
            await session.run_turn("Hello", second)

    sums = [
        (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens)
        for heard in (first, second)
        for usage in heard.used
        if usage.input_tokens is not None
    ]
    costs = [u.cost for heard in (first, second) for u in heard.used if u.cost is not None]
    assert sums == [(150, 1, 40, 10), (150, 30, 40, 10), (300, 31, 80, 20), (300, 60, 80, 20)]
    assert costs == [0.25, 0.5]
    assert Usage(context_share=0.151, cumulative=True) in first.used


async def test_tools_and_answers_are_timed(rig: Rig) -> None:
    """By the clock of the daemon, as they are heard of."""
    with trio.fail_after(LIMIT):
        _, heard = await rig.turn("claude: tool=sleep~0.2;echo~no;exit~3")

    (ended,) = (event for event in heard.events if isinstance(event, ToolEnded))
    answers = [event for event in heard.events if isinstance(event, ModelAnswered)]
    assert (ended.failed, ended.error) == (True, "no")
    assert ended.duration is not None
    assert 0.1 < ended.duration < 30
    assert [answer.model for answer in answers] == ["claude-test-1"] * 2


@pytest.mark.parametrize("name", CLAUDE_SECRETS)
async def test_no_secret_leaves_the_adapter(rig: Rig, name: str) -> None:
    """Whatever the agent prints it in: a line of JSON, a tool's error, or stderr."""
    rig.environment[name] = KEY
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn(f"claude: tool=echo~${name};echo~${name}>&2;false exit=1")

    told = repr((result, heard.events))
    assert "***" in told
    assert KEY not in told


async def test_every_line_is_heard_as_it_is(rig: Rig) -> None:
    """What would steer a terminal means nothing in JSON, and is removed from what is shown."""
    stream = rig.home / "stream"
    hidden = '{"type":"x","message":"a\x9d","is_error":true,"text":"\x9cb\x9b31mc"}\r\n'
    stream.write_text(hidden)
    program = rig.home / "claude"
    program.write_text(f"#!/bin/sh\ncat {stream}\n")
    program.chmod(0o755)
    context = AgentContext(
        command=str(program), settings=rig.agent()._settings, clock=trio.current_time
    )
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with ADAPTER.create(context).session(rig.params()) as session:
            await session.run_turn("Hello", heard)

    assert heard.messages == ["x: a bc"]


async def test_a_turn_that_is_not_to_blame_on_its_id_runs_once(rig: Rig) -> None:
    """Nothing is tried a second time that could have begun."""
    with trio.fail_after(LIMIT):
        result, heard = await rig.turn("claude: exit=1")
        resumed, _ = await rig.turn("claude: fail=1", resume=by(rig)[0][1])

    assert (result.error_kind, resumed.error_kind) == (ErrorKind.PORT_EXIT, ErrorKind.TURN_FAILED)
    assert len(rig.launches()) == 2
    assert isinstance(heard.events[1], Notification)
    assert replace(result, warnings=()).message == "claude-code exited with a non-zero status: 1"
