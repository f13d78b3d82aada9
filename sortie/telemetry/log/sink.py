"""The sink that makes log lines of facts.

Rule 1: a line about a run names its issue too, as long as the run lives, and the turn under way.
Where spans are made of the run, it has the ids of its trace, and of the turn's span or the run's.
Rule 2: a failure that repeats itself is logged the first time and every ``EVERY`` times, else at
debug, and its end is a line.
"""

from __future__ import annotations

from sortie.facts import (
    Fact,
    RunFinished,
    RunHandedOver,
    RunRecovered,
    RunStarted,
    RunTakenOver,
    TurnBegan,
    TurnCompleted,
)
from sortie.facts.fact import LogLine, RecurringFailures
from sortie.model.traces import RUN, span_id_of, trace_id_of, turn_part
from sortie.telemetry.log.structlog_alone import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class LogSink:
    """Writes the lines of each fact through structlog, as ``configure`` left it.

    ``level`` is the least that is shown: no line is made that is below it.
    """

    def __init__(self, level: str = "debug") -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()
        self._least = _LEVELS[level]
        self._runs: dict[object, _LoggedRun] = {}
        self._failures = RecurringFailures()

    def __call__(self, fact: Fact) -> None:
        """Write what a fact has to say."""
        if isinstance(fact, RunStarted | RunRecovered):
            self._runs[fact.run_id] = _LoggedRun(fact)
        elif isinstance(fact, TurnBegan) and (run := self._runs.get(fact.run_id)) is not None:
            run.begin_turn(fact.turn)
        if self._is_shown(fact):
            for line in fact.log_lines(self._failures):
                self._write(line)
        if isinstance(fact, TurnCompleted) and (run := self._runs.get(fact.run_id)) is not None:
            run.end_turn()
        elif isinstance(fact, RunFinished | RunRecovered | RunHandedOver):
            self._runs.pop(fact.run_id, None)

    def _is_shown(self, fact: Fact) -> bool:
        """Tell whether a fact has a line to write; a kind with lines of its own is to be asked."""
        return _LEVELS[fact.level] >= self._least or type(fact).log_lines is not Fact.log_lines

    def _write(self, line: LogLine) -> None:
        if _LEVELS[line.level] < self._least:
            return
        id_, values = line.values.get("run"), dict(line.values)
        run = self._runs.get(id_)
        issue = values.get("issue", None if run is None else run.issue)
        known = {key: value for key, value in {"issue": issue, "run": id_}.items() if value}
        if run is not None and run.turn is not None and "turn" not in values:
            known["turn"] = run.turn
        traced = {} if run is None else run.ids
        self._log.log(_LEVELS[line.level], line.event, **(known | values | traced))


class _LoggedRun:
    """A run that lives: ``turn`` is the one under way, ``ids`` are those of its trace."""

    def __init__(self, started: RunStarted | RunRecovered) -> None:
        self.issue = started.issue.identifier
        self.turn: int | None = None
        self.ids: dict[str, str] = {}
        self._run_id = started.run_id
        self._is_traced = started.traced
        self._turns = 0
        self.end_turn()
        if isinstance(started, RunTakenOver):
            self._turns = started.turn - 1
            self.begin_turn(started.turn)

    def begin_turn(self, number: int) -> None:
        """Have lines name a turn, of whichever agent."""
        self._turns += 1
        self.turn = number
        self._point_to(turn_part(self._turns))

    def end_turn(self) -> None:
        """Have lines name no turn."""
        self.turn = None
        self._point_to(RUN)

    def _point_to(self, part: str) -> None:
        if self._is_traced:
            self.ids = {
                "trace_id": f"{trace_id_of(self._run_id):032x}",
                "span_id": f"{span_id_of(self._run_id, part):016x}",
            }
