"""The sums over all runs, kept by facts."""

from __future__ import annotations

from sortie.daemon.totals import RunTotals
from sortie.facts import Fact
from sortie.model import LOCAL, RunId, RunStatus, Spending, TurnOutcome
from sortie.store import Totals
from sortie.telemetry import facts
from sortie.web.state import TotalsView
from tests.worker.rig import issue

RUN = RunId("run-1")
NOTHING = Totals(runs=0, turns=0, credits=None, tokens=None, seconds_running=0.0)


def completed(credits_: float | None = None, tokens: int | None = None) -> Fact:
    return facts.TurnCompleted(
        run_id=RUN,
        agent="kiro",
        turn=1,
        outcome=TurnOutcome.COMPLETED,
        seconds=2.0,
        spent=Spending(credits=credits_, output_tokens=tokens),
    )


def one_run(*turns: Fact) -> list[Fact]:
    return [
        facts.RunStarted(
            run_id=RUN, issue=issue(), attempt=0, host=LOCAL, agent="kiro", max_turns=2
        ),
        *(
            fact
            for number, turn in enumerate(turns, 1)
            for fact in (facts.TurnBegan(run_id=RUN, turn=number, max_turns=2), turn)
        ),
        facts.RunFinished(
            run_id=RUN, issue=issue(), status=RunStatus.SUCCEEDED, turns=len(turns), seconds=7.5
        ),
    ]


def test_what_happens_is_added_to_what_was() -> None:
    """The sums go on from the store's, and the time of runs under way is on top."""
    totals = RunTotals(Totals(runs=10, turns=20, credits=1.5, tokens=100, seconds_running=60.0))

    for fact in one_run(completed(0.25, 7), completed(0.25)):
        totals(fact)

    assert totals.view(under_way=3.0) == TotalsView(
        runs=11, turns=22, credits=2.0, tokens=107, seconds_running=70.5
    )


def test_unknown_is_none_until_an_agent_tells() -> None:
    """Turns without credits or tokens leave the sums unknown; zero is a number."""
    totals = RunTotals(NOTHING)

    for fact in one_run(completed()):
        totals(fact)
    before = totals.view(under_way=0.0)
    totals(completed(0.0, 0))

    assert before == TotalsView(runs=1, turns=1, credits=None, tokens=None, seconds_running=7.5)
    assert totals.view(under_way=0.0) == TotalsView(
        runs=1, turns=1, credits=0.0, tokens=0, seconds_running=7.5
    )
