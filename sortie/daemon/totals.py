"""Sums over all runs ever recorded, kept up to date by facts."""

from __future__ import annotations

from sortie.facts import Fact
from sortie.model import NOTHING, RunId, Spending
from sortie.model.numbers import rounded
from sortie.store import Totals
from sortie.telemetry import facts
from sortie.web.state import TotalsView


class RunTotals:
    """A sink that begins with what the store knows and adds what happens."""

    def __init__(self, totals: Totals) -> None:
        self._runs = totals.runs
        self._turns = totals.turns
        self._tokens = totals.tokens
        self._spent = Spending(
            credits=totals.credits, cost_usd=totals.cost_usd, estimated_usd=totals.estimated_usd
        )
        self._seconds = totals.seconds_running
        self._counted: dict[RunId, Spending] = {}

    def __call__(self, fact: Fact) -> None:
        """Add what a fact tells."""
        match fact:
            case facts.RunTakenOver(run_id=run_id, counted=counted):  # it was counted when it began
                self._counted[run_id] = counted
            case facts.RunStarted():
                self._runs += 1
            case facts.TurnBegan():
                self._turns += 1
            case facts.TurnCompleted(run_id=run_id, spent=spent):
                self._spent += spent - self._counted.pop(run_id, NOTHING)
            case facts.RunFinished(seconds=seconds):
                self._seconds += seconds
            case _:
                pass

    def view(self, under_way: float) -> TotalsView:
        """Return the sums; ``under_way`` is how long the present runs have taken, in seconds."""
        added, spent = self._spent.tokens, self._spent.rounded()
        tokens = self._tokens if added is None else (self._tokens or 0) + added
        return TotalsView(
            runs=self._runs,
            turns=self._turns,
            credits=spent.credits,
            tokens=tokens,
            cost_usd=spent.cost_usd,
            estimated_usd=spent.estimated_usd,
            seconds_running=rounded(self._seconds + under_way),
        )
