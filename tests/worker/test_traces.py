"""What programs of a run are told of its trace."""

from __future__ import annotations

import pytest

from sortie.agents import SessionParams
from sortie.config.traces import TracesSettings
from sortie.model.traces import RunTrace, hook_part, turn_part
from sortie.telemetry import facts
from tests.worker.rig import HOOKS, RUN, Rig

pytestmark = pytest.mark.usefixtures("clock")


async def test_hooks_and_agents_are_told_where_they_stand() -> None:
    """A hook its own span, an agent that of its session, and each turn its own."""
    rig, trace = Rig(hooks=HOOKS, agent={"max_turns": 2}), RunTrace(RUN, 1.0)
    rig.environ |= {"TRACEPARENT": "of the daemon", "TRACESTATE": "of=it"}
    rig.trace = RunTrace(RUN, 1.0)
    told: list[str | None] = []

    async def note(params: SessionParams) -> None:
        told.append(params.traceparent())

    rig.agent.before_launch = note

    await rig.work()

    assert [ran.env["TRACEPARENT"] for ran in rig.transport.ran] == [
        trace.parent(hook_part(name)) for name in ("after_create", "before_run", "after_run")
    ]
    (env,) = rig.agent.envs
    assert env["TRACEPARENT"] == trace.turn()
    assert told == [trace.parent(turn_part(1)), trace.parent(turn_part(2))]
    assert "TRACESTATE" not in env


async def test_without_traces_nothing_is_changed() -> None:
    """What the daemon's own environment holds is passed on as anything else."""
    rig = Rig(hooks=HOOKS)
    rig.environ |= {"TRACEPARENT": "of the daemon", "TRACESTATE": "of=it"}

    await rig.work()

    (env,) = rig.agent.envs
    assert (env["TRACEPARENT"], env["TRACESTATE"]) == ("of the daemon", "of=it")
    assert all("TRACEPARENT" not in ran.env for ran in rig.transport.ran)


@pytest.mark.parametrize("content", [None, False, True])
async def test_prompts_are_told_only_where_they_are_wanted(content: bool | None) -> None:
    """Without their secrets, and cut."""
    rig = Rig(prompt="Use hunter2" + " x" * 30_000)
    if content is not None:
        rig.settings = rig.settings.model_copy(update={"traces": TracesSettings(content=content)})
    rig.redact = lambda text: text.replace("hunter2", "***")

    await rig.work()

    (began,) = rig.of(facts.TurnBegan)
    if content:
        assert began.prompt is not None
        assert began.prompt.startswith("Use *** x")
        assert len(began.prompt) <= 32_768
    else:
        assert began.prompt is None
