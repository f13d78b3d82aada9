"""The lines for what may fail in the same way for days: polls, tracker requests, the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from sortie.telemetry.facts import (
    PollCompleted,
    StoreFailed,
    StoreRecovered,
    TrackerAsked,
    TransitionCompleted,
)
from sortie.telemetry.log.daemon_lines import issue_line
from sortie.telemetry.log.lines import Level, Line, Lines, line, seconds

EVERY = 20
"""Every so many equal failures in a row are told again."""

RecurringFact = PollCompleted | TrackerAsked | StoreFailed | StoreRecovered | TransitionCompleted

_TOLD_BY_ANOTHER_FACT = {"fetch_candidates", "transition", "comment", "label"}


@dataclass(slots=True)
class _Row:
    error: str
    equal: int = 0
    total: int = 0


class RecurringLines:
    """Turns such facts into lines, and knows what failed before.

    ``failures`` in a line is how many equal ones came in a row, or, when it is over, how many
    there were.
    """

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def lines(self, fact: RecurringFact) -> Lines:
        """Return the lines for a fact."""
        match fact:
            case PollCompleted():
                return self._poll(fact)
            case TrackerAsked():
                return self._request(fact)
            case TransitionCompleted():
                return self._move(fact)
            case StoreFailed(error=error):
                level, count = self._failed("store", error, "error")
                return (line(level, "store.failed", error=error, failures=count),)
            case StoreRecovered():
                return (line("info", "store.recovered", failures=self._over("store") or None),)
            case _:
                assert_never(fact)

    def _poll(self, fact: PollCompleted) -> tuple[Line, ...]:
        if fact.result == "success":
            took = seconds(fact.seconds)
            done = line("debug", "poll.completed", candidates=fact.candidates, seconds=took)
            failures = self._over("poll")
            return (
                (done, line("info", "poll.recovered", failures=failures)) if failures else (done,)
            )
        name = "poll.skipped" if fact.result == "skipped" else "poll.failed"
        if fact.result == "skipped" and fact.error is None:
            return (line("debug", name),)
        level, count = self._failed("poll", f"{fact.result}: {fact.error}", "warning")
        return (line(level, name, error=fact.error, failures=count),)

    def _request(self, fact: TrackerAsked) -> tuple[Line, ...]:
        operation = fact.operation
        quiet = operation in _TOLD_BY_ANOTHER_FACT
        if fact.result != "success":
            level, count = self._failed(operation, fact.error or "", "warning")
            failed = line(
                "debug" if quiet else level,
                "tracker.failed",
                operation=operation,
                error=fact.error,
                failures=count,
            )
            return (failed,)
        took = seconds(fact.seconds)
        answered = line("debug", "tracker.answered", operation=operation, seconds=took)
        failures = self._over(operation)
        if not failures or quiet:
            return (answered,)
        again = line("info", "tracker.recovered", operation=operation, failures=failures)
        return (answered, again)

    def _move(self, fact: TransitionCompleted) -> tuple[Line, ...]:
        if fact.closed:
            level, count = self._failed("tracker", fact.error or "", "warning")
            return (line(level, "tracker.closed", error=fact.error, failures=count),)
        reopened = fact.result == "success" and self._over("tracker")
        told = issue_line(fact)
        return (line("info", "tracker.reopened", failures=reopened), told) if reopened else (told,)

    def _failed(self, subject: str, error: str, loud: Level) -> tuple[Level, int]:
        row = self._rows.setdefault(subject, _Row(error=error))
        if row.error != error:
            row.error, row.equal = error, 0
        row.equal += 1
        row.total += 1
        told = row.equal == 1 or row.equal % EVERY == 0
        return loud if told else "debug", row.equal

    def _over(self, subject: str) -> int:
        row = self._rows.pop(subject, None)
        return 0 if row is None else row.total
