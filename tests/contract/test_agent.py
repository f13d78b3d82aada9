"""What every agent adapter promises, over real processes; each kind brings a subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio

from sortie.agents import ADAPTERS, Agent, Session, SessionParams
from sortie.model import (
    NOTIFICATION_LIMIT,
    AgentError,
    ErrorKind,
    Launched,
    Notification,
    TurnOutcome,
)
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, Rig, is_alive

LIMIT = 60


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An adapter with prompts that make its agent succeed, fail, talk a lot and hang."""

    agent: Agent
    params: SessionParams
    success: str
    failure: str
    long_line: str
    hang: str


def kiro(folder: Path) -> Subject:
    bench = Rig(folder, LocalTransport())
    return Subject(
        agent=bench.agent(),
        params=bench.params(),
        success="Hello",
        failure="sim: exit=1",
        long_line="sim: long_line=5000",
        hang="sim: hang=1",
    )


SUBJECTS: dict[str, Callable[[Path], Subject]] = {"kiro": kiro}


@pytest.fixture(params=sorted(SUBJECTS))
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    become_subreaper()
    return SUBJECTS[request.param](tmp_path)


def test_every_kind_is_held_to_this() -> None:
    """No adapter that is built in stays outside of the suite."""
    assert sorted(SUBJECTS) == list(ADAPTERS.built_in)


async def test_a_success_has_no_error(subject: Subject) -> None:
    """A completed turn has neither kind nor message; its first event is the launch."""
    heard = Heard()
    session = await subject.agent.start_session(subject.params)

    result = await subject.agent.run_turn(session, subject.success, heard)

    assert (result.outcome, result.error_kind, result.message) == (
        TurnOutcome.COMPLETED,
        None,
        None,
    )
    assert isinstance(heard.events[0], Launched)
    assert heard.messages
    assert not is_alive(heard.pid)


async def test_a_failure_is_a_result(subject: Subject) -> None:
    """A failing turn raises nothing; it has kind and message."""
    session = await subject.agent.start_session(subject.params)

    result = await subject.agent.run_turn(session, subject.failure, Heard())

    assert result.outcome is TurnOutcome.FAILED
    assert result.error_kind is not None
    assert result.message


async def test_notifications_are_bounded(subject: Subject) -> None:
    """No notification is empty or has more than 500 characters."""
    heard = Heard()
    session = await subject.agent.start_session(subject.params)

    await subject.agent.run_turn(session, subject.long_line, heard)

    lengths = [len(e.message) for e in heard.events if isinstance(e, Notification)]
    assert min(lengths) > 0
    assert max(lengths) == NOTIFICATION_LIMIT


async def test_turns_follow_one_another(subject: Subject) -> None:
    """A session goes on after a success and after a failure."""
    session = await subject.agent.start_session(subject.params)
    prompts = [subject.success, subject.failure, subject.success]

    results = [await subject.agent.run_turn(session, prompt, Heard()) for prompt in prompts]

    assert [result.outcome for result in results] == [
        TurnOutcome.COMPLETED,
        TurnOutcome.FAILED,
        TurnOutcome.COMPLETED,
    ]


async def test_sessions_run_at_the_same_time(subject: Subject) -> None:
    """One adapter serves a turn that succeeds while another hangs."""
    hanging = Heard()
    one = await subject.agent.start_session(subject.params)
    other = await subject.agent.start_session(subject.params)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(subject.agent.run_turn, one, subject.hang, hanging)
        await hanging.launched.wait()
        result = await subject.agent.run_turn(other, subject.success, Heard())
        nursery.cancel_scope.cancel()

    assert result.outcome is TurnOutcome.COMPLETED


async def test_cancelling_leaves_no_process(subject: Subject) -> None:
    """A cancelled turn's process is gone before run_turn is left."""
    heard = Heard()
    session = await subject.agent.start_session(subject.params)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(subject.agent.run_turn, session, subject.hang, heard)
        await heard.launched.wait()
        nursery.cancel_scope.cancel()

    assert not is_alive(heard.pid)


async def test_stop_is_safe_at_any_time(subject: Subject) -> None:
    """Before, during and after a turn; a running one returns ``turn_cancelled``."""
    agent, heard, kinds_seen = subject.agent, Heard(), list[ErrorKind | None]()
    session = await agent.start_session(subject.params)
    idle = await agent.start_session(subject.params)

    async def turn() -> None:
        kinds_seen.append((await agent.run_turn(session, subject.hang, heard)).error_kind)

    await agent.stop_session(idle)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        await heard.launched.wait()
        nursery.start_soon(agent.stop_session, session)
        await agent.stop_session(session)
    await agent.stop_session(session)

    assert kinds_seen == [ErrorKind.TURN_CANCELLED]
    assert not is_alive(heard.pid)


@pytest.mark.parametrize("workspace", ["", "relative", "/no/such/directory", "a file"])
async def test_a_session_needs_a_workspace(
    subject: Subject, workspace: str, tmp_path: Path
) -> None:
    """Anything but an absolute directory is ``invalid_workspace_cwd``."""
    if workspace == "a file":
        workspace = str(tmp_path / "file")
        Path(workspace).write_text("")

    with pytest.raises(AgentError) as caught:
        await subject.agent.start_session(replace(subject.params, workspace=workspace))

    assert caught.value.kind is ErrorKind.INVALID_WORKSPACE_CWD


async def test_misuse_is_refused(subject: Subject) -> None:
    """A missing on_event is a TypeError, a foreign session a ``response_error``."""
    session = await subject.agent.start_session(subject.params)

    with pytest.raises(TypeError):
        await subject.agent.run_turn(session, subject.success, None)
    with pytest.raises(AgentError) as caught:
        await subject.agent.run_turn(Session("x", object()), subject.success, Heard())

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR


async def test_the_event_stream_is_asked_for_without_harm(subject: Subject) -> None:
    """It is None where events come through on_event."""
    stream = subject.agent.event_stream()

    assert stream is None or hasattr(stream, "__anext__")
