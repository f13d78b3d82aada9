"""Live runs: what is known of each, and that it is forgotten at its end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from sortie.facts import (
    ActivityChanged,
    AgentNoted,
    AgentSpoke,
    Fact,
    IssueRead,
    Phase,
    RunPhaseChanged,
    SessionNamed,
    SessionStarted,
    ToolCallStarted,
    TurnBegan,
    WorkspaceReady,
)
from sortie.model import Activity, RunId, Spending
from sortie.telemetry.live_runs import LiveRuns, RunDetails
from tests.telemetry.samples import (
    AGENT_USED,
    FACTS,
    ISSUE,
    RUN,
    RUN_FINISHED,
    RUN_STARTED,
    TURN_FAILED,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
STARTED = RunDetails(
    run_id=RUN,
    issue=ISSUE,
    attempt=0,
    host="local",
    max_turns=3,
    started_at=BEGIN,
    last_event_at=BEGIN,
    phase=Phase.STARTING,
    turn=None,
    session_id=None,
    workspace=None,
    last_message=None,
)


def ticks() -> Iterator[datetime]:
    moment = BEGIN
    while True:
        yield moment
        moment += timedelta(seconds=1)


@pytest.fixture
def live() -> LiveRuns:
    """Live runs whose clock goes on by a second with each look at it."""
    clock = ticks()
    return LiveRuns(lambda: next(clock))


def test_a_run_is_shown_as_its_facts_tell(live: LiveRuns) -> None:
    """Each fact changes its part; the last one tells when something happened."""
    moved = replace(ISSUE, state="In Progress")
    facts: list[Fact] = [
        replace(RUN_STARTED, reaction=("checks",)),
        IssueRead(run_id=RUN, issue=moved),
        RunPhaseChanged(run_id=RUN, phase=Phase.TURN),
        WorkspaceReady(run_id=RUN, path="/w/DEMO-1", created=True),
        SessionStarted(run_id=RUN, session_id="s-1"),
        TurnBegan(run_id=RUN, turn=1, max_turns=5),
        AgentSpoke(run_id=RUN, agent="kiro", lines=1, message="reading"),
        AgentSpoke(run_id=RUN, agent="kiro", lines=0, message=None),
        SessionNamed(run_id=RUN, session_id="s-2"),
        ToolCallStarted(run_id=RUN, tool="shell", kind=None, locations=()),
        replace(AGENT_USED, spent=Spending(credits=0.25)),
        TURN_FAILED,
        TurnBegan(run_id=RUN, turn=2, max_turns=5),
        replace(AGENT_USED, spent=Spending(credits=0.5, output_tokens=7), context_share=None),
        ToolCallStarted(run_id=RUN, tool="read", kind=None, locations=()),
        AgentNoted(run_id=RUN, text="I begin with the tests"),
        ActivityChanged(run_id=RUN, activity=Activity(model="large", tool_uses={"shell": 1})),
    ]

    for fact in facts:
        live(fact)

    assert live.runs() == {
        RUN: replace(
            STARTED,
            issue=moved,
            max_turns=5,
            last_event_at=BEGIN + timedelta(seconds=16),
            phase=Phase.TURN,
            turn=2,
            note="I begin with the tests",
            session_id="s-2",
            workspace="/w/DEMO-1",
            last_message="reading",
            tool="read",
            spent=Spending(credits=0.5, output_tokens=7),
            context_share=0.5,
            activity=Activity(model="large", tool_uses={"shell": 1}),
            reaction=("checks",),
        )
    }


def test_a_finished_run_is_forgotten_and_stays_so(live: LiveRuns) -> None:
    """News of a run that is over, or was never begun, changes nothing."""
    other = RunId("another")
    live(RUN_STARTED)
    live(replace(RUN_STARTED, run_id=other))
    live(RUN_FINISHED)

    for fact in FACTS:
        if fact is not RUN_STARTED:
            live(fact)

    assert set(live.runs()) == {other}


def test_a_view_does_not_change_under_its_reader(live: LiveRuns) -> None:
    """What was handed out stays as it was when later facts come."""
    live(RUN_STARTED)
    view = live.runs()

    live(TurnBegan(run_id=RUN, turn=1, max_turns=3))
    live(RUN_FINISHED)

    assert view == {RUN: STARTED}
    with pytest.raises(TypeError):
        view[RUN] = STARTED  # type: ignore[index]


def test_a_reviewer_is_seen_and_changes_nothing_of_the_agent(live: LiveRuns) -> None:
    """What it says, its tool and what it uses are shown; session and turn stay the agent's."""
    for fact in (
        RUN_STARTED,
        SessionStarted(run_id=RUN, session_id="s-1"),
        TurnBegan(run_id=RUN, turn=3, max_turns=5),
        ActivityChanged(run_id=RUN, activity=Activity(model="large")),
        RunPhaseChanged(run_id=RUN, phase=Phase.REVIEW),
        SessionStarted(run_id=RUN, session_id="s-2", role="reviewer"),
        TurnBegan(run_id=RUN, turn=1, max_turns=2, role="reviewer"),
        AgentSpoke(run_id=RUN, agent="kiro", lines=1, message="I read", role="reviewer"),
        ToolCallStarted(run_id=RUN, tool="grep", kind=None, locations=(), role="reviewer"),
        replace(AGENT_USED, spent=Spending(credits=0.5), role="reviewer"),
        ActivityChanged(run_id=RUN, activity=Activity(model="small"), role="reviewer"),
    ):
        live(fact)

    run = live.runs()[RUN]
    assert (run.phase, run.session_id, run.turn, run.max_turns) == (Phase.REVIEW, "s-1", 3, 5)
    assert (run.last_message, run.tool, run.spent.credits) == ("I read", "grep", 0.5)
    assert (run.activity.model, run.context_share) == ("large", None)
