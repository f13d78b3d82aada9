"""What every kind of fact has: fields, the name and level of its log event, and its log lines.

A kind of fact is one class; most need no more than this::

    @fact("workspace.ready", "info")
    class WorkspaceReady(RunFact):
        path: str
        created: bool

It is logged as one line with its fields in their order, the issue and the run first. A field that
is None, or has its default, is left out; ``hidden`` ones are never shown. Where a level, a name or
the number of lines depends on the fields, a kind overrides ``level``, ``event`` or ``log_lines``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeVar

from msgspec import NODEFAULT, Struct
from msgspec.structs import replace

from sortie.model import RunId, Spending
from sortie.model.numbers import rounded

Level = Literal["debug", "info", "warning", "error"]

EVERY = 20
"""After so many equal failures in a row another one is logged."""


class LogLine(Struct, frozen=True, kw_only=True):
    """One log event; ``event`` is a stable dotted name, ``values`` come in the order shown."""

    level: Level
    event: str
    values: Mapping[str, object]


def line(level: Level, event: str, **values: object) -> LogLine:
    """Return a line without what is unknown: values that are None are left out."""
    known = {key: value for key, value in values.items() if value is not None}
    return LogLine(level=level, event=event, values=known)


class _Failures(Struct):
    error: str
    equal: int = 0
    total: int = 0


class RecurringFailures:
    """Counts failures, so that a failure that lasts for days is logged now and then.

    ``failures`` in a line is how many equal ones came in a row, or, when it is over, how many
    there were.
    """

    def __init__(self) -> None:
        self._by_subject: dict[str, _Failures] = {}

    def count(self, subject: str, logged: LogLine, error: str | None) -> LogLine:
        """Return the line for one more failure: at debug, unless it is to be logged again."""
        failures = self._by_subject.setdefault(subject, _Failures(error=str(error)))
        if failures.error != str(error):
            failures.error, failures.equal = str(error), 0
        failures.equal += 1
        failures.total += 1
        again = failures.equal == 1 or failures.equal % EVERY == 0
        level = logged.level if again else "debug"
        return replace(logged, level=level, values={**logged.values, "failures": failures.equal})

    def end(self, subject: str, logged: LogLine) -> list[LogLine]:
        """Return the line for the end of failures; no line where there were none."""
        failures = self._by_subject.pop(subject, None)
        if failures is None:
            return []
        return [replace(logged, values={**logged.values, "failures": failures.total})]


Kind = TypeVar("Kind", bound="Fact")

_SHOWN_AS = {
    "issue_identifier": "issue",
    "run_id": "run",
    "session_id": "session",
    "python_version": "python",
    "ways_out": "ends_with",
    "process": "pid",
}
"""Names of fields that have another name in the log."""

_NEVER_SHOWN = {"issue_id"}


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


_FORMATS: Mapping[str, Callable[[Any], object]] = {
    "issue": attrgetter("identifier"),
    "process": attrgetter("pid"),
    "ways_out": "; or ".join,
    "seconds": _milliseconds,
    "seconds_since_fetch": _milliseconds,
    "delay": _milliseconds,
    "credits": rounded,
    "cost": rounded,
    "context_share": rounded,
}
"""Fields that are shown in another form than ``str`` gives them."""


class ShownField(Struct, frozen=True, kw_only=True):
    """A field as the log shows it: under ``key``, in some form, unless it has its default."""

    name: str
    key: str
    default: object
    form: Callable[[Any], object]


class Fact(Struct, frozen=True, kw_only=True):
    """Something that happened. Durations are seconds; a fact never holds a secret, and a prompt
    only where the settings want it in spans."""

    EVENT: ClassVar[str]
    LEVEL: ClassVar[Level]
    SHOWN: ClassVar[Sequence[ShownField]]

    @property
    def event(self) -> str:
        """The name of its log event."""
        return self.EVENT

    @property
    def level(self) -> Level:
        """The level of its log line."""
        return self.LEVEL

    def shown(self) -> dict[str, object]:
        """Return what its log line shows; None is left out of the line."""
        return {
            field.key: field.form(value)
            for field in self.SHOWN
            if (value := getattr(self, field.name)) != field.default
        }

    def log_lines(self, _failures: RecurringFailures, /) -> Iterable[LogLine]:
        """Return its log lines; a kind that may fail for days asks what failed before."""
        return [line(self.level, self.event, **self.shown())]


def fact(
    event: str, level: Level, *, hidden: Collection[str] = ()
) -> Callable[[type[Kind]], type[Kind]]:
    """Give a kind of fact the name and the level of its log event.

    ``hidden`` are fields for other sinks than the log.
    """

    def make(kind: type[Kind]) -> type[Kind]:
        kind.EVENT, kind.LEVEL, kind.SHOWN = event, level, _shown_fields(kind, set(hidden))
        return kind

    return make


class RunFact(Fact, frozen=True, kw_only=True):
    """A fact about one run; ``role`` is who else than the run's agent it is about."""

    run_id: RunId
    role: str | None = None


def shown_spending(spent: Spending) -> dict[str, object]:
    """Return what a log line shows of what was used; ``cost`` is in dollars."""
    amounts = spent.rounded()
    return {
        "credits": amounts.credits,
        "tokens": amounts.tokens,
        "cost_usd": amounts.cost_usd,
        "estimated": True if spent.estimated_usd else None,
    }


def _shown_fields(kind: type[Fact], hidden: set[str]) -> list[ShownField]:
    names = kind.__struct_fields__
    defaults = dict(zip(reversed(names), reversed(kind.__struct_defaults__), strict=False))
    if unknown := hidden - {*names}:
        raise TypeError(f"{kind.__name__} has no fields {unknown} to hide")
    return [
        ShownField(
            name=name,
            key=_SHOWN_AS.get(name, name),
            default=None if (default := defaults.get(name)) is NODEFAULT else default,
            form=_FORMATS.get(name, _unchanged),
        )
        for name in names
        if name not in hidden | _NEVER_SHOWN
    ]


def _unchanged(value: object) -> object:
    return value
