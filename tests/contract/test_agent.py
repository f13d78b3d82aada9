"""What every agent adapter promises, over real processes; each kind brings a subject."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trio

from sortie.agents import ADAPTERS, Agent, SessionParams
from sortie.model import AgentError, ErrorKind, RunId, TurnOutcome, TurnResult
from sortie.model.turns import NOTIFICATION_LIMIT, Launched, Notification
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, Rig, is_alive, visit
from tests.examples import toy_agent

LIMIT = 60


ENDS = {
    "exit 137": ErrorKind.TURN_CANCELLED,
    "exit 143": ErrorKind.TURN_CANCELLED,
    "signal TERM": ErrorKind.TURN_CANCELLED,
    "signal KILL": ErrorKind.TURN_CANCELLED,
    "signal SEGV": ErrorKind.PORT_EXIT,
    "exit 127": ErrorKind.AGENT_NOT_FOUND,
}
"""What it means that an agent's process ends in the middle of a turn, whichever agent it is."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An adapter with prompts that make its agent do something.

    It succeeds, fails, talks a lot and hangs; its process ``ends`` in a given way, or is a fake's
    and does not; it dies after a line that has no end and is ``last_words``; it writes a line of
    more than 10 MiB, and a lot besides.
    """

    agent: Agent
    params: SessionParams
    success: str
    failure: str
    long_line: str
    hang: str
    ends: Callable[[str], str] = str
    unterminated: str = ""
    last_words: str = ""
    too_long: str = ""
    noise: str = ""


def kiro(folder: Path) -> Subject:
    rig = Rig(folder, LocalTransport())
    return Subject(
        agent=rig.agent(),
        params=rig.params(),
        success="Hello",
        failure="sim: exit=1",
        long_line="sim: long_line=5000",
        hang="sim: hang=1",
        ends=lambda end: f"sim: {end.replace(' ', '=')}",
        unterminated="Hello",
        last_words="I added a note to `SORTIE_DEMO.md`.",
        too_long="sim: long_line=10485761",
        noise="sim: output=2000000",
    )


def toy(folder: Path) -> Subject:
    workspace = folder / "workspace"
    workspace.mkdir()
    command = (sys.executable, str(Path(toy_agent.__file__).with_name("program.py")))
    return Subject(
        agent=toy_agent.ToyAgent(command, toy_agent.ToySettings()),
        params=SessionParams(
            run_id=RunId("run-toy"),
            workspace=str(workspace),
            transport=LocalTransport(),
            env={"PATH": os.defpath, "HOME": str(folder), "SORTIE_RUN_ID": f"toy-{os.getpid()}"},
            read_timeout=20.0,
            stop_grace=0.5,
        ),
        success="Hello",
        failure="toy: fail",
        long_line="toy: long line",
        hang="toy: hang",
        ends=lambda end: f"toy: {end}",
        unterminated="toy: unterminated",
        last_words="last words",
        too_long="toy: too long",
        noise="toy: noise",
    )


SUBJECTS: dict[str, Callable[[Path], Subject]] = {"kiro": kiro, "toy": toy}


@pytest.fixture(params=sorted(SUBJECTS))
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    become_subreaper()
    return SUBJECTS[request.param](tmp_path)


def test_every_kind_is_held_to_this() -> None:
    """No adapter that is built in stays outside of the suite."""
    assert set(ADAPTERS.built_in) <= set(SUBJECTS)


async def one_turn(subject: Subject, prompt: str) -> tuple[TurnResult, Heard]:
    """Run one turn in a session of its own, in a bounded time."""
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with subject.agent.session(subject.params) as session:
            return await session.run_turn(prompt, heard), heard


@pytest.mark.parametrize("end", ENDS)
async def test_the_end_of_a_process_means_the_same(subject: Subject, end: str) -> None:
    """Death from outside is a cancelled turn, a crash is not, and 127 is no program."""
    result, _ = await one_turn(subject, subject.ends(end))

    cancelled = ENDS[end] is ErrorKind.TURN_CANCELLED
    expected = TurnOutcome.CANCELLED if cancelled else TurnOutcome.FAILED
    assert (result.outcome, result.error_kind) == (expected, ENDS[end])


async def test_an_unterminated_last_line_counts(subject: Subject) -> None:
    """What was said last is told though the line has no end."""
    _, heard = await one_turn(subject, subject.unterminated)

    assert heard.messages[-1] == subject.last_words


async def test_a_line_that_is_too_long_fails_the_turn(subject: Subject) -> None:
    """More than 10 MiB in one line are not kept, and the turn is over."""
    result, heard = await one_turn(subject, subject.too_long)

    assert (result.outcome, result.error_kind) == (TurnOutcome.FAILED, ErrorKind.PORT_EXIT)
    assert not is_alive(heard.pid)


async def test_all_output_is_read_and_is_a_sign_of_life(subject: Subject) -> None:
    """An agent is not held up by what it writes, wherever that goes, and every chunk is heard."""
    result, heard = await one_turn(subject, subject.noise)

    assert result.outcome is TurnOutcome.COMPLETED
    assert heard.batches > 10


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
    """After a cancelled turn no process is there any more than before it, and none later."""
    heard = Heard()
    async with subject.agent.session(subject.params) as session, trio.open_nursery() as nursery:
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
