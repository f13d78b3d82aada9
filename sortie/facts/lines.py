"""Log lines before they are stamped, cleaned and rendered, and failures that are told once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from sortie.dataclass import dataclass

Level = Literal["debug", "info", "warning", "error"]

EVERY = 20
"""Every so many equal failures in a row are told again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One log event; ``event`` is a stable dotted name, ``values`` come in the order shown."""

    level: Level
    event: str
    values: Mapping[str, object]


def line(level: Level, event: str, **values: object) -> LogLine:
    """Return a line without what is unknown: values that are None are left out."""
    known = {key: value for key, value in values.items() if value is not None}
    return LogLine(level=level, event=event, values=known)


@dataclass(slots=True)
class _Failures:
    error: str
    equal: int = 0
    total: int = 0


class RecurringFailures:
    """Counts what fails, so that a failure that lasts for days is told now and then.

    ``failures`` in a line is how many equal ones came in a row, or, when it is over, how many
    there were.
    """

    def __init__(self) -> None:
        self._by_subject: dict[str, _Failures] = {}

    def count(self, subject: str, told: LogLine, error: str | None) -> LogLine:
        """Return the line for one more failure: at debug, unless it is to be told again."""
        failures = self._by_subject.setdefault(subject, _Failures(error=str(error)))
        if failures.error != str(error):
            failures.error, failures.equal = str(error), 0
        failures.equal += 1
        failures.total += 1
        again = failures.equal == 1 or failures.equal % EVERY == 0
        level = told.level if again else "debug"
        return replace(told, level=level, values={**told.values, "failures": failures.equal})

    def end(self, subject: str, told: LogLine) -> list[LogLine]:
        """Return the line for the end of failures; no line where there were none."""
        failures = self._by_subject.pop(subject, None)
        if failures is None:
            return []
        return [replace(told, values={**told.values, "failures": failures.total})]
