"""The agent's own word about its work."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from sortie.model import Finish, Finished, RunReport
from sortie.model.secrets import redactor
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from tests.agents.fake import Completes, Fails, Silent
from tests.worker.rig import RUN, Rig, issue

LIMITS = {"turn_timeout_ms": 60_000, "stall_timeout_ms": 20_000}


@pytest.mark.parametrize(
    ("word", "finish", "reason"),
    [
        ("blocked", Finish.BLOCKED, ""),
        (" Blocked\nbecause of the weather\n", Finish.BLOCKED, "because of the weather"),
        ("blocked: no password, hush", Finish.BLOCKED, "no password, ***"),
        ("needs-human-review\n", Finish.REVIEW, ""),
        ("Done.\n", Finish.DONE, ""),
    ],
)
@pytest.mark.parametrize("good", [True, False])
async def test_the_agents_word_ends_the_run(
    clock: MockClock, word: str, finish: Finish, reason: str, good: bool
) -> None:
    """Each word counts after a good turn and a failed one, with what follows it."""
    rig = Rig(agent={"max_turns": 5})
    rig.redact = redactor(["hush"])
    rig.agent.scripts["A"] = [Completes(status=word) if good else Fails(status=word)]

    report = await rig.work()

    assert report == RunReport(end=Finished(finish=finish, reason=reason), turns=1, seconds=1.0)
    (told,) = rig.of(facts.StatusFileRead)
    assert (told.known, told.reason) == (True, reason)
    assert "/root/A/.sortie/status" not in rig.transport.files.contents


async def test_the_agents_word_counts_after_a_timeout(clock: MockClock) -> None:
    """What was written before the turn was ended is heard."""
    rig = Rig(agent=LIMITS)
    rig.agent.scripts["A"] = [Silent()]

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write_status_at, rig, 5.0)
        report = await rig.work()

    assert report.end == Finished(finish=Finish.BLOCKED)


async def write_status_at(rig: Rig, seconds: float) -> None:
    await trio.sleep(seconds)
    await rig.transport.files.write_file("/root/A", ".sortie/status", b"blocked")


async def test_an_unknown_word_is_a_warning(clock: MockClock) -> None:
    """It is told as unknown, removed, and the run goes on."""
    rig = Rig(agent={"max_turns": 2})
    rig.agent.scripts["A"] = [Completes(status="finished, I think"), Completes()]

    report = await rig.work()

    assert report.turns == 2
    assert rig.of(facts.StatusFileRead) == [
        facts.StatusFileRead(run_id=RUN, word="finished, I think", known=False)
    ]


async def test_a_status_file_that_is_a_link_is_a_warning(clock: MockClock) -> None:
    """It is not read, it is removed, and the run goes on."""
    rig = Rig()
    path = "/root/A/.sortie/status"
    rig.agent.scripts["A"] = [Completes(does=lambda: rig.transport.files.odd.add(path))]

    report = await rig.work()

    assert report.end == Finished(finish=Finish.TURNS_USED)
    assert [fact.known for fact in rig.of(facts.StatusFileRead)] == [False]
    assert rig.transport.files.odd == set()


async def test_an_old_word_does_not_count(clock: MockClock) -> None:
    """What stood in the status file before the run is removed unread."""
    rig = Rig()
    await rig.work()
    await rig.transport.files.write_file("/root/A", ".sortie/status", b"blocked")

    report = await rig.work()

    assert report.end == Finished(finish=Finish.TURNS_USED)
    assert rig.of(facts.StatusFileRead) == []


async def test_the_agents_own_edits_are_known_when_it_gives_up(clock: MockClock) -> None:
    """The issue is read once more before a word ends the run.

    Else a change that the agent made in its last turn would look like a person's, and end the
    hold that follows.
    """
    rig = Rig(agent={"max_turns": 5})
    rig.agent.scripts["A"] = [
        Completes(status="blocked", does=lambda: rig.tracker.edit("a", state="Doing"))
    ]

    report = await rig.work()

    assert report.end == Finished(finish=Finish.BLOCKED)
    assert rig.told[-1] == ev.IssueMoved(RUN, issue(state="Doing"))
