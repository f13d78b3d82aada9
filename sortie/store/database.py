"""One connection to a database, whatever holds it: statements by name, transactions, errors.

One thread uses it.
"""

from __future__ import annotations

import math
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

_NAME_LINE = re.compile(r"-- name: (\w+)")


@cache
def queries() -> Mapping[str, str]:
    """Return the statements of ``queries.sql`` by name."""
    text = files("sortie.store").joinpath("queries.sql").read_text(encoding="utf-8")
    return named_statements(text)


def named_statements(text: str) -> Mapping[str, str]:
    """Return the statements that stand under ``-- name:`` lines, by name.

    Raises ValueError for a name that stands twice and for a name without exactly one statement.
    """
    found: dict[str, str] = {}
    _preamble, *parts = _NAME_LINE.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        split = tuple(statements(body))
        if name in found or len(split) != 1:
            raise ValueError(f"{name}: a name stands once, over one statement")
        found[name] = split[0]
    return found


def statements(script: str) -> Iterator[str]:
    """Yield the statements of a script, triggers whole. Raises ValueError for an open end."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
    if any(line and not line.startswith("--") for line in map(str.strip, pending.splitlines())):
        raise ValueError(f"a statement without an end: {pending.strip()}")


Row = dict[str, Any]
Value = str | bytes | int | float | None


class Database(ABC):
    """A connection, in autocommit mode outside ``transaction``.

    ``name`` is what messages call the database; ``identity`` tells it from all others. Methods
    raise the errors of its driver, which ``explained`` turns into StoreError. A text that the
    database cannot hold as text, such as one with lone surrogates, comes back as it was.
    """

    REFUSALS: ClassVar[tuple[type[Exception], ...]]
    """What says that a value or row is at fault, and not the disk or the server."""

    CONTRADICTIONS: ClassVar[tuple[type[Exception], ...]]
    """Those of them that say that a row contradicts another."""

    name: str
    identity: tuple[int, int]

    def perform(self, job: Callable[[Database], T], asked_at: float = math.inf) -> T:  # noqa: ARG002
        """Do a job that was asked for at ``asked_at``, in seconds of ``time.monotonic``, or now."""
        return job(self)

    @abstractmethod
    def rows(self, query: str, **values: Value) -> list[Row]:
        """Run a named statement and return its rows."""

    def rows_of_each(self, query: str, many: Sequence[Mapping[str, Value]]) -> list[list[Row]]:
        """Run a named statement with each of these values in turn; return the rows of each."""
        return [self.rows(query, **values) for values in many]

    def row(self, query: str, **values: Value) -> Row:
        """Run a named statement that always has a row, and return the first."""
        return self.rows(query, **values)[0]

    @abstractmethod
    def change(self, query: str, **values: Value) -> int:
        """Run a named statement and return the number of rows it changed."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Write everything inside, durably, or nothing."""

    @abstractmethod
    def forgettable_transaction(self) -> AbstractContextManager[None]:
        """Write everything inside, or nothing; a crash of the machine may undo it, as long as
        nothing was written durably after it."""

    @abstractmethod
    def every_row(self, table: str, order: str) -> Iterator[Row]:
        """Yield all rows of a table, by some columns; both are names of the program's own."""

    @abstractmethod
    def insert_rows(self, table: str, rows: Iterable[Row]) -> None:
        """Add rows to a table, whose columns each of them has by their names."""

    @abstractmethod
    def clear(self, table: str) -> None:
        """Delete all rows of a table."""

    @abstractmethod
    def count(self, table: str) -> int:
        """Return how many rows a table has."""

    @abstractmethod
    def explained(self, attempt: str) -> AbstractContextManager[None]:
        """Turn the driver's errors into StoreError; ``attempt`` is a verb such as "read"."""

    @abstractmethod
    def check(self, *, doubted: bool) -> None:
        """Raise StoreError, or an error of the driver, where the database cannot be written now;
        ``doubted``: the last try has failed."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; closing twice is fine."""


class ServerDatabase(Database):
    """A database on a server, which may never answer; the disk of a file is waited for."""

    ANSWER_LIMIT: ClassVar[float]
    """Seconds after which a job without an answer is given up."""

    @property
    @abstractmethod
    def may_be_used(self) -> bool:
        """Whether the lease for which it is used is not over."""

    @abstractmethod
    def give_up(self) -> None:
        """Have the job fail that waits for an answer; another thread may call it."""
