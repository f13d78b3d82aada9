"""The credential preflight, on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
from trio.testing import MockClock

from sortie.agents import SessionParams
from sortie.agents.kiro.agent import KiroAgent
from sortie.agents.kiro.settings import KiroSettings
from sortie.model import AgentError, ErrorKind, RunId, TransportError
from sortie.resources import shortage_behind
from sortie.transports import Command, Exit
from tests.agents.fake_transport import Breaks, Ends, FakeTransport, Pause, Say, Step
from tests.agents.kiro.simulated import visit

GOOD = (Pause(1), Say(1, b"Authenticated with API key\n"), Ends(Exit(status=0)))
BAD = (Pause(1), Say(2, b"Authentication failed. Your API key may be"), Ends(Exit(status=0)))


def agent() -> KiroAgent:
    return KiroAgent(None, KiroSettings(), trio.current_time)


def params(
    transport: FakeTransport, *, key: str | None = "sk-1", workspace: str = "/work"
) -> SessionParams:
    env = {"PATH": "/bin"} if key is None else {"PATH": "/bin", "KIRO_API_KEY": key}
    return SessionParams(
        run_id=RunId("run-1"),
        workspace=workspace,
        transport=transport,
        env=env,
        read_timeout=5.0,
        stop_grace=2.0,
    )


def answering(*steps: Step) -> FakeTransport:
    return FakeTransport(lambda _: steps)


async def test_the_canary(autojump_clock: MockClock) -> None:
    """It is ``whoami``, in the workspace, with the session's environment."""
    transport = answering(*GOOD)

    await visit(agent(), params(transport))

    env = {"PATH": "/bin", "KIRO_API_KEY": "sk-1"}
    assert transport.commands == [
        Command(argv=("/bin/kiro-cli", "whoami"), cwd="/work", env=env, grace=2.0)
    ]


@pytest.mark.parametrize(
    ("key", "steps", "message"),
    [
        (None, GOOD, "KIRO_API_KEY is not set"),
        ("", GOOD, "KIRO_API_KEY is not set"),
        ("  \n", GOOD, "KIRO_API_KEY is not set"),
        ("sk-1", BAD, "KIRO_API_KEY is invalid or expired"),
        ("sk-1", (Ends(Exit(status=1)),), "exited with status 1"),
        ("sk-1", (Ends(Exit(signal=11)),), "ended by signal 11"),
        ("sk-1", (Ends(Exit(status=0)),), "did not confirm KIRO_API_KEY"),
        ("sk-1", (Pause(6), *GOOD), "did not answer within 5 s"),
        (
            "sk-1",
            (Say(2, b"asking you\n"), Pause(60)),
            "within 5 s (agent.read_timeout_ms); it said: asking you",
        ),
        ("sk-1", (Ends(Exit(status=0)), Pause(60)), "did not answer within 5 s"),
        ("sk-1", (Breaks(TransportError("too many files")),), "too many files"),
    ],
)
async def test_a_credential_that_is_not_confirmed(
    key: str | None, steps: Sequence[Step], message: str, autojump_clock: MockClock
) -> None:
    """Each failure is a retryable ``response_error`` with its own words, and leaves no process."""
    transport = answering(*steps)

    with pytest.raises(AgentError) as caught:
        await visit(agent(), params(transport, key=key))

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR
    assert message in str(caught.value)
    assert caught.value.timed_out == ("within 5 s" in message)
    assert transport.left_running == 0


async def test_the_checks_have_an_order(autojump_clock: MockClock) -> None:
    """Workspace before program before key: the first that fails is told."""
    nothing = FakeTransport(lambda _: (), programs={})

    kinds = []
    for wanted in (params(nothing, key=None, workspace=""), params(nothing, key=None)):
        with pytest.raises(AgentError) as caught:
            await visit(agent(), wanted)
        kinds.append(caught.value.kind)

    assert kinds == [ErrorKind.INVALID_WORKSPACE_CWD, ErrorKind.AGENT_NOT_FOUND]


async def test_a_program_that_vanishes_before_the_canary(autojump_clock: MockClock) -> None:
    """A program that resolved and cannot be started any more is ``agent_not_found``."""

    class Vanishing(FakeTransport):
        async def resolve_program(self, name: str, path: str | None = None) -> str:
            return "/bin/other"

    with pytest.raises(AgentError) as caught:
        await visit(agent(), params(Vanishing(lambda _: GOOD)))

    assert caught.value.kind is ErrorKind.AGENT_NOT_FOUND


async def test_no_preflight_on_another_host(autojump_clock: MockClock) -> None:
    """Elsewhere neither a missing key nor whoami is this machine's business."""
    transport = FakeTransport(lambda _: BAD, host="builder-1")

    await visit(agent(), params(transport, key=None))

    assert transport.commands == []


async def test_a_passing_canary_is_remembered_for_a_minute(autojump_clock: MockClock) -> None:
    """Within 60 s no second whoami starts; after that one does."""
    transport, kiro = answering(*GOOD), agent()
    started = []

    for pause in (0.0, 57.0, 2.0):
        await trio.sleep(pause)
        await visit(kiro, params(transport))
        started.append(len(transport.commands))

    assert started == [1, 1, 1]
    await trio.sleep(2)
    await visit(kiro, params(transport))
    assert len(transport.commands) == 2


async def test_another_key_is_another_canary(autojump_clock: MockClock) -> None:
    """The memory belongs to one program and one key."""
    transport, kiro = answering(*GOOD), agent()

    for key in ("sk-1", "sk-2", "sk-1"):
        await visit(kiro, params(transport, key=key))

    assert len(transport.commands) == 2


async def test_a_failing_canary_is_not_remembered(autojump_clock: MockClock) -> None:
    """A key that was mended works at once."""
    answers = [BAD, GOOD]
    transport, kiro = FakeTransport(lambda _: answers.pop(0)), agent()

    with pytest.raises(AgentError):
        await visit(kiro, params(transport))
    await visit(kiro, params(transport))

    assert answers == []


async def test_the_key_is_not_kept(autojump_clock: MockClock) -> None:
    """What is remembered holds no key."""
    kiro = agent()

    await visit(kiro, params(answering(*GOOD), key="sk-very-secret"))

    assert "sk-very-secret" not in repr(vars(kiro._credential))


@pytest.mark.parametrize(("steps", "answer"), [(GOOD, "passed"), (BAD, ErrorKind.RESPONSE_ERROR)])
async def test_a_burst_shares_one_canary(
    steps: Sequence[Step], answer: str, autojump_clock: MockClock
) -> None:
    """Fifty sessions at once start one whoami, and all get its answer."""
    transport, kiro = answering(*steps), agent()
    answers = []

    async def start() -> None:
        try:
            await visit(kiro, params(transport))
            answers.append("passed")
        except AgentError as error:
            answers.append(error.kind)

    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(start)

    assert answers == [answer] * 50
    assert len(transport.commands) == 1


async def test_cancelling_the_one_that_asks_fails_nobody_else(autojump_clock: MockClock) -> None:
    """Where the session whose canary runs is cancelled, one of the others takes over."""
    transport, kiro = answering(*GOOD), agent()
    first, passed = trio.CancelScope(), []

    async def asks() -> None:
        with first:
            await visit(kiro, params(transport))

    async def shares(number: int) -> None:
        await visit(kiro, params(transport))
        passed.append(number)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(asks)
        await trio.sleep(0.1)
        for number in range(5):
            nursery.start_soon(shares, number)
        await trio.sleep(0.1)
        first.cancel()

    assert sorted(passed) == [0, 1, 2, 3, 4]
    assert len(transport.commands) == 2
    assert first.cancelled_caught
    assert transport.left_running == 0


async def test_a_canary_that_finds_no_memory_says_nothing_of_the_key(
    autojump_clock: MockClock,
) -> None:
    """What kept it from asking is a shortage, by which no run fails for good."""
    said = b"kiro-cli: error while loading shared libraries: libc.so.6: Cannot allocate memory\n"
    transport = answering(Say(2, said), Ends(Exit(status=127)))

    with pytest.raises(AgentError) as caught:
        await visit(agent(), params(transport))

    assert shortage_behind(caught.value) is not None
