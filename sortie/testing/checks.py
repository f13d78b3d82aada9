"""Checks that adapters are held to: each has a name and a promise, and ends in a verdict."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from enum import StrEnum
from typing import Generic, TypeAlias, TypeVar

import trio
from msgspec import Struct

from sortie.model import SortieError

CHECK_TIME_LIMIT = 120.0
"""Seconds that a check may take, unless the caller gives another limit."""

SubjectT = TypeVar("SubjectT")

Body: TypeAlias = Callable[[SubjectT], Awaitable[None]]


class NotKept(AssertionError):
    """An adapter does not keep a promise of the port; the text says what was seen."""


class NotTried(Exception):
    """A check could not be made; the text says why."""


class Status(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_TRIED = "not tried"


class CheckVerdict(Struct, frozen=True, kw_only=True):
    """What became of one check; ``reason`` is "" where it passed."""

    check: str
    promise: str
    status: Status
    seconds: float
    reason: str = ""


def require(condition: object, seen: str) -> None:
    """Raise NotKept with what was seen, unless a condition holds."""
    if not condition:
        raise NotKept(seen)


def require_equal(found: object, wanted: object, what: str) -> None:
    """Raise NotKept unless two values are equal; ``what`` names the value that was found."""
    if found != wanted:
        raise NotKept(f"{what}: {found!r:.700}, and {wanted!r:.700} was expected")


class ConformanceCheck(Struct, Generic[SubjectT], frozen=True):
    """Something that an adapter promises; ``promise`` says it in a sentence.

    What ``body`` raises is the outcome: NotKept, NotTried, or an error that is a failure as well.
    """

    name: str
    promise: str
    body: Body[SubjectT]

    async def verdict(
        self, subject: SubjectT, time_limit: float = CHECK_TIME_LIMIT
    ) -> CheckVerdict:
        """Make the check and return what it comes to."""
        began = trio.current_time()
        status, reason = await self.outcome(subject, time_limit)
        return CheckVerdict(
            check=self.name,
            promise=self.promise,
            status=status,
            seconds=round(trio.current_time() - began, 3),
            reason=reason,
        )

    async def outcome(self, subject: SubjectT, time_limit: float) -> tuple[Status, str]:
        """Make the check and return its status, and the reason where it did not pass."""
        status, reason = Status.PASSED, ""
        with trio.move_on_after(time_limit) as limit:
            try:
                await self.body(subject)
            except Exception as error:  # the edge: any error of an adapter is the check's outcome
                status, reason = _judgement(error)
        if limit.cancel_called:
            return Status.FAILED, f"it was not over after {time_limit:g} s"
        return status, reason


def _judgement(error: Exception) -> tuple[Status, str]:
    leaves = list(_leaves(error))
    for kind, status in ((NotKept, Status.FAILED), (NotTried, Status.NOT_TRIED)):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return status, str(leaf)
    place = traceback.extract_tb(leaves[0].__traceback__)[-1]
    where = f"{place.filename}:{place.lineno}"
    return Status.FAILED, f"{type(leaves[0]).__name__}: {leaves[0]!s:.300} ({where})"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


class Checks(dict[str, ConformanceCheck[SubjectT]]):
    """Checks by their names, in the order in which they are made."""

    def __init__(self, check_class: type[ConformanceCheck[SubjectT]] = ConformanceCheck) -> None:
        super().__init__()
        self._check_class = check_class

    def check(self, name: str, promise: str) -> Callable[[Body[SubjectT]], Body[SubjectT]]:
        """Make a function a check. Raises ValueError where there is one of that name."""
        if name in self:
            raise ValueError(f"there are two checks {name!r}")

        def register(body: Body[SubjectT]) -> Body[SubjectT]:
            self[name] = self._check_class(name, promise, body)
            return body

        return register

    def chosen(self, words: Iterable[str]) -> list[str]:
        """Return the names of the checks that these words mean: names, or beginnings as ``stop``.

        Raises SortieError where a word means none.
        """
        found: dict[str, None] = {}
        for word in words:
            names = [name for name in self if name == word or name.startswith(f"{word}.")]
            if not names:
                raise SortieError(f"there is no check {word!r}; known: {', '.join(self)}")
            found.update(dict.fromkeys(names))
        return list(found)
