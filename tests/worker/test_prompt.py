"""The prompt of each turn."""

from __future__ import annotations

from trio.testing import MockClock

from sortie.model import ErrorKind, Failed, Finish, Finished
from tests.agents.fake import Completes
from tests.transports.fake import Does
from tests.worker.rig import Rig


async def test_each_turn_has_its_prompt(clock: MockClock) -> None:
    """The template knows the issue as last read and the turn; the first says all that the agent may
    answer, a later one how it says that nothing is left."""
    rig = Rig(
        prompt="{{ issue.title }} {{ run.turn_number }}/{{ run.max_turns }} {{ workspace.path }}",
        agent={"max_turns": 2, "status_instructions": True},
    )
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.tracker.edit("a", title="New"))]

    await rig.work()

    first, second = (text.partition("working directory.\n\n")[2] for text in rig.agent.prompts)
    assert first.startswith("Mend a 1/2 /root/A\n\n")
    assert ".sortie/status" in first
    assert "blocked" in first
    assert second == (
        "New 2/2 /root/A\n\n"
        "When nothing is left to do, write the word done to the file .sortie/status, and stop."
    )


async def test_a_later_prompt_that_speaks_of_the_status_is_left_as_it_is(clock: MockClock) -> None:
    """The template's own words count, and so do settings that want none of ours."""
    for prompt, wanted in (("Write done to .sortie/status.", True), ("Go on.", False)):
        rig = Rig(prompt=prompt, agent={"max_turns": 2, "status_instructions": wanted})

        await rig.work()

        assert rig.agent.prompts[1] == prompt


async def test_a_finished_agent_is_asked_nothing_more(clock: MockClock) -> None:
    """One that says so in its first turn takes no other, and one that is asked whether anything is
    left takes one."""
    rig = Rig(prompt="{% if not run.is_continuation %}Work.{% endif %}", agent={"max_turns": 5})
    rig.agent.scripts["A"] = [Completes(status="done")]
    other = Rig(prompt="{% if not run.is_continuation %}Work.{% endif %}", agent={"max_turns": 5})
    other.agent.scripts["A"] = [Completes(), Completes(status="done")]

    reports = [await rig.work(), await other.work()]

    assert [(report.turns, report.end) for report in reports] == [
        (1, Finished(finish=Finish.DONE)),
        (2, Finished(finish=Finish.DONE)),
    ]
    assert "Is anything left to do for it?" in other.agent.prompts[1]


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
