"""A turn that another daemon has begun is read as if this one had begun it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.agents import Agent, SessionParams
from sortie.model import TurnOutcome
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    ErrorsWritten,
    Launched,
    SessionKnown,
    Usage,
)
from sortie.transports.local import LocalTransport, become_subreaper
from tests.agents.adoption import TurnTapes
from tests.agents.claude_code.simulated import Rig as ClaudeRig
from tests.agents.kiro.simulated import Heard
from tests.agents.kiro.simulated import Rig as KiroRig

LIMIT = 60


@pytest.fixture(params=["kiro", "claude-code"])
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> KiroRig | ClaudeRig:
    become_subreaper()
    made = KiroRig if request.param == "kiro" else ClaudeRig
    return made(tmp_path, LocalTransport())


def told(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Return what was told of usage, answers and sessions, but for what kiro-cli's own record says,
    which nobody has read before the turn."""
    kinds = (AnswerGiven, ErrorsWritten, SessionKnown, Usage)
    return [e for e in events if isinstance(e, kinds) and getattr(e, "context_share", None) is None]


def agent_of(rig: KiroRig | ClaudeRig) -> tuple[Agent, SessionParams]:
    return rig.agent(), rig.params()


async def test_it_is_told_anew(rig: KiroRig | ClaudeRig, tmp_path: Path) -> None:
    """With the same result, usage and answer, whatever its prompt is said to be; a further turn of
    the session goes on with the conversation."""
    tapes = TurnTapes(rig.transport, str(tmp_path))
    agent, params = agent_of(rig)
    first, again, further = Heard(), Heard(), Heard()
    with trio.fail_after(LIMIT):
        async with agent.session(replace(params, start_turn=tapes.record)) as session:
            begun = await session.run_turn("Hello", first)
            known = session.id
        adopting = replace(params, start_turn=tapes.again, adopted=tapes.memos[0])
        other, _ = agent_of(rig)
        async with other.session(adopting) as session:
            early = session.id
            read = await session.run_turn("", again)
            adopting_id = session.id
            tapes.goes_on = True
            await session.run_turn("Hello again", further)

    assert begun == read
    assert begun.outcome is TurnOutcome.COMPLETED
    assert told(first.events) == told(again.events) != []
    assert any(isinstance(event, AnswerGiven) for event in again.events)
    assert [event.adopted for event in again.events if isinstance(event, Launched)] == [True]
    assert (early, adopting_id) == (known, known)
    assert [event.adopted for event in further.events if isinstance(event, Launched)] == [False]
    assert any(word in tapes.last for word in ("--resume", "--resume-id"))
