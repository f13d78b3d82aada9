"""The kit finds what an adapter does wrong: each fault here fails the checks that are about it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import toy_agent
import trio
from msgspec.structs import replace

from sortie.agents import AgentContext, Session, SessionParams
from sortie.agents.kiro import ADAPTER as kiro
from sortie.model import ErrorKind, TurnOutcome, TurnResult
from sortie.model.turns import Launched
from sortie.testing.agent import CHECKS, Status, this_machine
from tests.contract.agent.kinds import conformance
from tests.contract.agent.shell_agent import ShellAgent

DONE = TurnResult(outcome=TurnOutcome.COMPLETED)


async def verdict_on(kind: str, check: str, scratch: Path, **changed: Any) -> tuple[Status, str]:
    """Return what a check comes to that has few seconds."""
    subject = replace(conformance(kind, scratch), patience=6.0, slack=3.0, **changed)
    verdict = await subject.verdict(CHECKS[check], this_machine())
    return verdict.status, verdict.reason


FORGOTTEN = {
    "the exits": "end.exit-143",
    "the last line": "end.unterminated",
    "the limit": "output.too-long",
    "stderr": "stall.life",
    "500 characters": "turn.long-text",
    "one at a time": "turn.one-at-a-time",
    "leaving": "stop.session-left",
    "the workspace": "start.missing-workspace",
    "the proof": "turn.unproven",
}


@pytest.mark.parametrize("forgotten", FORGOTTEN)
async def test_what_an_adapter_forgets_is_found(forgotten: str, tmp_path: Path) -> None:
    """Each rule that is left out fails the check that is about it."""

    def make(context: AgentContext) -> ShellAgent:
        return ShellAgent(context, [forgotten])

    status, reason = await verdict_on("shell", FORGOTTEN[forgotten], tmp_path, make=make)

    assert status is Status.FAILED
    assert reason


class _Stubborn(toy_agent.ToySession):
    """Ignores that its turn is cancelled."""

    async def run_turn(self, prompt: str, on_events: Any) -> TurnResult:
        results: list[TurnResult] = []
        with trio.CancelScope(shield=True):
            results.append(await super().run_turn(prompt, on_events))
        return results[0]


class _Careless(toy_agent.ToySession):
    """Does not tell the agent that its turn is cancelled, and lets it work on."""

    async def _cancel(self) -> None:
        await trio.lowlevel.checkpoint()


class _Breeder(toy_agent.ToySession):
    """Starts a process beside the transport, which knows nothing of it."""

    async def run_turn(self, prompt: str, on_events: Any) -> TurnResult:
        subprocess.Popen(["sleep", "600"], cwd="/", env={})
        return await super().run_turn(prompt, on_events)


class _Optimist(toy_agent.ToySession):
    """Takes every end of the agent for a success."""

    async def run_turn(self, prompt: str, on_events: Any) -> TurnResult:
        result = await super().run_turn(prompt, on_events)
        return DONE if result.error_kind is ErrorKind.PORT_EXIT else result


class _Ticking(toy_agent.ToySession):
    """Tells that the agent lives whether or not it does."""

    async def write(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(super().write)
            while True:
                await trio.sleep(0.2)
                self._tell([])


class _Trusting(toy_agent.ToySession):
    """Expects every line to be a message, with all its fields."""

    def stdout(self, line: str) -> Sequence[Any]:
        return self._obey(json.loads(line))


class _Indiscreet(toy_agent.ToySession):
    """Knows of no secret."""

    def __init__(self, process: Any, settings: Any, params: Any) -> None:
        super().__init__(process, settings, replace(params, env={**params.env, "TOY_KEY": ""}))


class _Forgetful(toy_agent.ToySession):
    """Goes on with no conversation."""

    def _say(self, what: str, **values: object) -> None:
        if what == "hello":
            values["resume"] = None
        super()._say(what, **values)


class _Patient(toy_agent.ToySession):
    """Waits for an agent that does not answer for as long as it likes."""

    async def greet(self) -> None:
        self._say("hello", resume=None)
        with trio.CancelScope(shield=True):
            await self._ready.wait()


class _Mute(toy_agent.ToySession):
    """Tells nothing of the process."""

    async def run_turn(self, prompt: str, on_events: Any) -> TurnResult:
        def rest(events: Sequence[Any]) -> None:
            on_events([it for it in events if not isinstance(it, Launched)])

        return await super().run_turn(prompt, rest)


class _Raising(toy_agent.ToySession):
    """Raises where a turn fails."""

    async def run_turn(self, prompt: str, on_events: Any) -> TurnResult:
        result = await super().run_turn(prompt, on_events)
        if result.outcome is not TurnOutcome.COMPLETED:
            raise ValueError(result.message)
        return result


FAULTS: list[tuple[type[toy_agent.ToySession], str, str]] = [
    (_Stubborn, "stop.while-silent", "it was not over after 6 s"),
    (_Careless, "stop.next-turn", "RuntimeError|an event was sent after the turn was over"),
    (_Breeder, "turn.success", "beside the transport"),
    (_Breeder, "stop.in-a-tool", "beside the transport"),
    (_Optimist, "turn.unproven", "completed"),
    (_Optimist, "end.exit-1", "completed"),
    (_Optimist, "output.too-long", "completed"),
    (_Ticking, "stall.silence", "an event was sent at least every"),
    (_Trusting, "output.junk", "Error"),
    (_Indiscreet, "output.secret", "the secret is in an event"),
    (_Forgetful, "resume.next-session", "was not recalled"),
    (_Forgetful, "resume.after-kill", "was not recalled"),
    (_Patient, "program.is-silent", "neither had nor refused"),
    (_Mute, "turn.success", "Launched"),
    (_Raising, "turn.failure", "ValueError"),
]


@pytest.mark.parametrize(("fault", "check", "seen"), FAULTS)
async def test_a_fault_of_a_living_agents_adapter_is_found(
    fault: type[toy_agent.ToySession],
    check: str,
    seen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The check fails, says what it saw (of several things the first), and ends what the adapter
    left."""
    monkeypatch.setattr(toy_agent, "ToySession", fault)

    status, reason = await verdict_on("toy", check, tmp_path)

    assert status is Status.FAILED
    assert re.search(seen, reason)


class _Forgets:
    """Kiro's adapter without one part of what a session is given."""

    def __init__(self, context: AgentContext, part: str) -> None:
        self._agent = kiro.create(context)
        self._part = part

    def session(self, params: SessionParams) -> AbstractAsyncContextManager[Session]:
        """Forget it."""
        return self._agent.session(replace(params, **{self._part: None}))


@pytest.mark.parametrize(
    ("part", "said"), [("start_turn", "called 0 times"), ("adopted", "is not `adopted`")]
)
async def test_an_adapter_that_cannot_be_adopted_is_found(
    part: str, said: str, tmp_path: Path
) -> None:
    """It starts programs by itself, or takes a turn that was begun for a new one."""
    status, reason = await verdict_on(
        "kiro", "adoption.success", tmp_path, make=lambda context: _Forgets(context, part)
    )

    assert status is Status.FAILED
    assert said in reason
