"""Sums over all runs ever recorded, kept up to date by facts."""

from __future__ import annotations

from sortie.store import Totals
from sortie.telemetry import facts
from sortie.telemetry.facts import Fact
from sortie.web.state import TotalsView


class RunTotals:
    """A sink that begins with what the store knows and adds what happens."""

    def __init__(self, totals: Totals) -> None:
        self._runs = totals.runs
        self._turns = totals.turns
        self._credits = totals.credits
        self._tokens = totals.tokens
        self._seconds = totals.seconds_running

    def __call__(self, fact: Fact) -> None:
        """Add what a fact tells."""
        match fact:
            case facts.RunStarted():
                self._runs += 1
            case facts.TurnBegan():
                self._turns += 1
            case facts.TurnCompleted(credits=credits_, tokens=tokens):
                if credits_ is not None:
                    self._credits = (self._credits or 0.0) + credits_
                if tokens is not None:
                    self._tokens = (self._tokens or 0) + tokens
            case facts.RunFinished(seconds=seconds):
                self._seconds += seconds
            case _:
                pass

    def view(self, under_way: float) -> TotalsView:
        """Return the sums; ``under_way`` is how long the present runs have taken, in seconds."""
        return TotalsView(
            runs=self._runs,
            turns=self._turns,
            credits=self._credits,
            tokens=self._tokens,
            seconds_running=self._seconds + under_way,
        )
