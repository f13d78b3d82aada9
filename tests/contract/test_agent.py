"""What every agent adapter promises, over real processes; each kind brings a subject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio

from sortie.agents import ADAPTERS, Agent, SessionParams
from sortie.model import AgentError, ErrorKind, TurnOutcome
from sortie.model.turns import NOTIFICATION_LIMIT, Launched, Notification
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, Rig, is_alive, visit

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
    async with subject.agent.session(subject.params) as session:
        result = await session.run_turn(subject.success, heard)

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
    async with subject.agent.session(subject.params) as session:
        result = await session.run_turn(subject.failure, Heard())

        assert result.outcome is TurnOutcome.FAILED
        assert result.error_kind is not None
        assert result.message


async def test_notifications_are_bounded(subject: Subject) -> None:
    """No notification is empty or has more than 500 characters."""
    heard = Heard()
    async with subject.agent.session(subject.params) as session:
        await session.run_turn(subject.long_line, heard)

        lengths = [len(e.message) for e in heard.events if isinstance(e, Notification)]
        assert min(lengths) > 0
        assert max(lengths) == NOTIFICATION_LIMIT


async def test_turns_follow_one_another(subject: Subject) -> None:
    """A session goes on after a success and after a failure."""
    async with subject.agent.session(subject.params) as session:
        prompts = [subject.success, subject.failure, subject.success]

        results = [await session.run_turn(prompt, Heard()) for prompt in prompts]

        assert [result.outcome for result in results] == [
            TurnOutcome.COMPLETED,
            TurnOutcome.FAILED,
            TurnOutcome.COMPLETED,
        ]


async def test_sessions_run_at_the_same_time(subject: Subject) -> None:
    """One adapter serves a turn that succeeds while another hangs."""
    hanging = Heard()
    agent, params = subject.agent, subject.params

    async with (
        agent.session(params) as one,
        agent.session(params) as other,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(one.run_turn, subject.hang, hanging)
        await hanging.launched.wait()
        result = await other.run_turn(subject.success, Heard())
        nursery.cancel_scope.cancel()

    assert result.outcome is TurnOutcome.COMPLETED


async def test_cancelling_leaves_no_process(subject: Subject) -> None:
    """A cancelled turn's process is gone before run_turn is left."""
    heard = Heard()
    async with subject.agent.session(subject.params) as session:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.run_turn, subject.hang, heard)
            await heard.launched.wait()
            nursery.cancel_scope.cancel()

        assert not is_alive(heard.pid)


async def test_leaving_is_safe_at_any_time(subject: Subject) -> None:
    """Before, during and after a turn; a running one returns ``turn_cancelled``."""
    heard, kinds = Heard(), list[ErrorKind | None]()

    async def turn(prompt: str, heard: Heard) -> None:
        kinds.append((await session.run_turn(prompt, heard)).error_kind)

    await visit(subject.agent, subject.params)
    async with trio.open_nursery() as nursery, subject.agent.session(subject.params) as session:
        nursery.start_soon(turn, subject.hang, heard)
        await heard.launched.wait()
    assert not is_alive(heard.pid)
    await turn(subject.success, Heard())

    assert kinds == [ErrorKind.TURN_CANCELLED, ErrorKind.TURN_CANCELLED]


async def test_turns_are_serial(subject: Subject) -> None:
    """A turn beside another of the same session is a mistake of the caller's."""
    heard = Heard()

    async with subject.agent.session(subject.params) as session, trio.open_nursery() as nursery:
        nursery.start_soon(session.run_turn, subject.hang, heard)
        await heard.launched.wait()
        with pytest.raises(RuntimeError):
            await session.run_turn(subject.success, Heard())
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("workspace", ["", "relative", "/no/such/directory", "a file"])
async def test_a_session_needs_a_workspace(
    subject: Subject, workspace: str, tmp_path: Path
) -> None:
    """Anything but an absolute directory is ``invalid_workspace_cwd``."""
    if workspace == "a file":
        workspace = str(tmp_path / "file")
        Path(workspace).write_text("")

    with pytest.raises(AgentError) as caught:
        await visit(subject.agent, replace(subject.params, workspace=workspace))

    assert caught.value.kind is ErrorKind.INVALID_WORKSPACE_CWD
