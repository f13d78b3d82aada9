"""The sink that makes log lines of facts.

Rule 1: a line about a run names its issue too, as long as the run lives.
Rule 2: a failure that repeats itself is logged the first time and every ``EVERY`` times, else at
debug, and its end is a line.
"""

from __future__ import annotations

from sortie.facts import Fact, RunFinished, RunStarted
from sortie.facts.fact import LogLine, RecurringFailures
from sortie.telemetry.log.structlog_alone import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class LogSink:
    """Writes the lines of each fact through structlog, as ``configure`` left it.

    ``level`` is the least that is shown: no line is made that is below it.
    """

    def __init__(self, level: str = "debug") -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._least = _LEVELS[level]
        self._issues: dict[object, str] = {}
        self._failures = RecurringFailures()

    def __call__(self, fact: Fact) -> None:
        """Write what a fact has to say."""
        if isinstance(fact, RunStarted):
            self._issues[fact.run_id] = fact.issue.identifier
        if self._is_shown(fact):
            for line in fact.log_lines(self._failures):
                self._write(line)
        if isinstance(fact, RunFinished):
            self._issues.pop(fact.run_id, None)

    def _is_shown(self, fact: Fact) -> bool:
        """Tell whether a fact has a line to write; a kind with lines of its own is to be asked."""
        return _LEVELS[fact.level] >= self._least or type(fact).log_lines is not Fact.log_lines

    def _write(self, line: LogLine) -> None:
        if _LEVELS[line.level] < self._least:
            return
        run = line.values.get("run")
        head = {"issue": line.values.get("issue", self._issues.get(run)), "run": run}
        known = {key: value for key, value in head.items() if value is not None}
        self._log.log(_LEVELS[line.level], line.event, **(known | dict(line.values)))
