"""The adapter with the real kiro-cli; needs the program and a key, and spends a few credits."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from sortie.agents import AgentContext, SessionParams
from sortie.agents.kiro import ADAPTER
from sortie.agents.kiro.settings import KiroSettings
from sortie.model import AgentError, ErrorKind, RunId, TurnOutcome
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.kiro.simulated import Heard, visit

pytestmark = [
    pytest.mark.skipif(shutil.which("kiro-cli") is None, reason="kiro-cli is not on PATH"),
    pytest.mark.skipif(not os.environ.get("KIRO_API_KEY"), reason="KIRO_API_KEY is not set"),
    pytest.mark.timeout(600),
]


def params(workspace: Path, **changed: str) -> SessionParams:
    become_subreaper()
    return SessionParams(
        run_id=RunId("live"),
        workspace=str(workspace),
        transport=LocalTransport(),
        env={**os.environ, "SORTIE_RUN_ID": f"live-{os.getpid()}", **changed},
        read_timeout=30.0,
    )


async def test_two_turns_of_one_conversation(tmp_path: Path) -> None:
    """A turn completes with credits, and the next one of the session remembers it."""
    agent = ADAPTER.create(
        AgentContext(command=None, settings=KiroSettings(), clock=trio.current_time)
    )
    first, second = Heard(), Heard()

    with trio.fail_after(300):
        async with agent.session(params(tmp_path)) as session:
            results = [
                await session.run_turn("Remember the word PONG. Answer OK.", first),
                await session.run_turn("Which word? Answer with it alone.", second),
            ]

    assert [result.outcome for result in results] == [TurnOutcome.COMPLETED] * 2
    assert [len(heard.used) for heard in (first, second)] == [1, 1]
    assert "PONG" in " ".join(second.messages)


async def test_a_bad_key_starts_no_session(tmp_path: Path) -> None:
    """The canary refuses a key that the service does not know."""
    agent = ADAPTER.create(
        AgentContext(command=None, settings=KiroSettings(), clock=trio.current_time)
    )

    with trio.fail_after(60), pytest.raises(AgentError) as caught:
        await visit(agent, params(tmp_path, KIRO_API_KEY="not-a-key"))

    assert caught.value.kind is ErrorKind.RESPONSE_ERROR
