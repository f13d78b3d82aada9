"""Places in texts, as people count them, and faults that are found there."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from itertools import accumulate

from msgspec import Struct

from sortie.model import Problem


class Place(Struct, frozen=True, kw_only=True):
    """Where something was written; ``line`` and ``column`` count from 1, 0 when unknown.

    ``name`` is what an override is called, such as ``SORTIE_POLLING_INTERVAL_MS``; it stands in
    problems instead of the dotted key. None is a place in a file.
    """

    source: str
    line: int = 0
    column: int = 0
    name: str | None = None

    @property
    def is_override(self) -> bool:
        """Tell whether this is outside WORKFLOW.md, where values are literal."""
        return self.name is not None

    def problem(self, key: str, message: str, severity: str = "error") -> Problem:
        """Return the finding that ``message`` is wrong with ``key`` here."""
        return Problem(
            path=self.source,
            line=self.line,
            column=self.column,
            key=self.name or key,
            message=message,
            severity=severity,
        )


class Text:
    """A whole text; ``source`` is what its file is called. Lines are counted by ``\\n`` only."""

    def __init__(self, source: str, content: str) -> None:
        self.source = source
        self.content = content

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self.content.split("\n")), initial=0))

    def place(self, index: int) -> Place:
        """Return the place of the character at ``index``, or of the text's end."""
        line = min(bisect_right(self._starts, index), len(self._starts) - 1)
        return Place(source=self.source, line=line, column=index - self._starts[line - 1] + 1)


class Fault(Exception):
    """A document is not what it should be; ``key`` is what is wrong in it, "" for no key."""

    def __init__(self, place: Place, message: str, key: str = "") -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.key = key

    @property
    def problem(self) -> Problem:
        """Return the fault as a problem, its place first."""
        return self.place.problem(self.key, self.message)


class Duplicate(Fault):
    """A key stands twice in a mapping, the first time at ``first``."""

    def __init__(self, place: Place, first: Place, key: str) -> None:
        super().__init__(place, "stands twice; keep one of them", key)
        self.first = first
