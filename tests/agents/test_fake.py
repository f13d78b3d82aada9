"""The fake agent keeps the port as real adapters do: it passes the checks that need no program."""

from __future__ import annotations

import pytest
from trio.testing import MockClock

from sortie.agents import AgentAdapter
from sortie.model import RunId
from sortie.model.turns import NOTIFICATION_LIMIT
from sortie.testing.agent import CHECKS, Scenarios, Status, Subject
from tests.agents.fake import Chats, Completes, Fails, FakeAgent, Silent, Step
from tests.contract.agent.shell_agent import ShellSettings
from tests.transports.fake import FakeTransport

WORKSPACE = "/workspaces/A-1"

STEPS: dict[str, Step] = {
    "success": Completes(),
    "failure": Fails(),
    "long-text": Completes(says=("x" * (2 * NOTIFICATION_LIMIT), "x")),
    "talk": Chats(every=0.1, times=10_000),
    "hang": Silent(),
}

PROMISES = (
    "start.missing-workspace",
    "turn.success",
    "turn.failure",
    "turn.series",
    "turn.one-at-a-time",
    "turn.two-sessions",
    "turn.long-text",
    "stop.before-launch",
    "stop.at-launch",
    "stop.while-silent",
    "stop.while-talking",
    "stop.session-left",
    "stop.next-turn",
    "stall.silence",
)


class Obedient(FakeAgent):
    """Does what the prompt names, so that the checks can choose."""

    def _next_step(self, identifier: str) -> Step:
        return STEPS[self.prompts[-1]]


ADAPTER = AgentAdapter(
    kind="fake",
    block_name="fake",
    block=ShellSettings,
    default_command="fake",
    env_names=(),
    create=lambda _context: Obedient(),
)


@pytest.mark.parametrize("name", PROMISES)
async def test_the_fake_keeps_what_the_port_promises(name: str, autojump_clock: MockClock) -> None:
    """As the adapters do, on the same words."""
    told = Scenarios.model_validate({"scenarios": {step: step for step in STEPS}})
    subject = Subject(
        adapter=ADAPTER,
        command=None,
        settings=ShellSettings(),
        scenarios=told,
        transport=FakeTransport(directories=[WORKSPACE]),
        workspace=WORKSPACE,
        run_id=RunId("run-1"),
        env={},
    )

    verdict = await CHECKS[name].verdict(subject)

    assert verdict.status is Status.PASSED, verdict.reason
