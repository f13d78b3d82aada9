"""The prompt of each turn."""

from __future__ import annotations

from trio.testing import MockClock

from sortie.model import ErrorKind, Failed
from tests.agents.fake import Completes
from tests.transports.fake import Does
from tests.worker.rig import Rig


async def test_each_turn_has_its_prompt(clock: MockClock) -> None:
    """The template knows the issue as last read and the turn; only the first explains itself."""
    rig = Rig(
        prompt="{{ issue.title }} {{ run.turn_number }}/{{ run.max_turns }} {{ workspace.path }}",
        agent={"max_turns": 2, "status_instructions": True},
    )
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.tracker.edit("a", title="New"))]

    await rig.work()

    first, second = rig.agent.prompts
    assert first.startswith("Mend a 1/2 /root/A\n\n")
    assert ".sortie/status" in first
    assert second == "New 2/2 /root/A"


async def test_a_broken_template_fails_the_run(clock: MockClock) -> None:
    """A template error launches nothing and counts no turn; after_run has run."""
    rig = Rig(prompt="one\n{{ issue.nonsense }}", hooks={"after_run": Does()})

    report = await rig.work()

    assert isinstance(report.end, Failed)
    assert report.end.kind is ErrorKind.TEMPLATE_ERROR
    assert ":2:" in report.end.message
    assert report.turns == 0
    assert rig.agent.launched_at == []
    assert rig.journal[-2:] == ["phase ending", "runs after_run"]
