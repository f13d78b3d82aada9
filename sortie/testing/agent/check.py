"""The checks that an adapter is held to, each with a name, a promise, and a bounded time."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import trio

from sortie.model import TransportError
from sortie.testing.agent.own_children import own_children, require_no_more_children
from sortie.testing.agent.subject import Subject
from sortie.testing.agent.verdicts import NotKept, NotTried, Status, Verdict

PATIENCE = 120.0
"""Seconds that a check may take, unless somebody says otherwise."""

_PAUSE = 2.0
_Body = Callable[[Subject], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Check:
    """Something that an adapter promises; ``promise`` says it in a sentence."""

    name: str
    promise: str
    body: _Body

    async def verdict(self, subject: Subject, patience: float = PATIENCE) -> Verdict:
        """Make the check, see that nobody is left, and return what it comes to.

        An adapter that heeds no cancellation has its processes ended, so that it comes back.
        """
        began, before = trio.current_time(), own_children()
        status, reason = await self._outcome(subject, patience)
        try:
            with trio.fail_after(patience):
                await subject.require_nobody_left("after the session")
            require_no_more_children(before)
        except (NotKept, TransportError, trio.TooSlowError) as error:
            if status is not Status.FAILED:
                status, reason = Status.FAILED, str(error) or "nobody could tell who is left"
        return Verdict(
            check=self.name,
            promise=self.promise,
            status=status,
            seconds=round(trio.current_time() - began, 3),
            reason=reason,
        )

    async def _outcome(self, subject: Subject, patience: float) -> tuple[Status, str]:
        late = f"it was not over after {patience:g} s"
        status, reason = Status.FAILED, late
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_end_processes_after, subject, patience + subject.stop_bound)
            with trio.move_on_after(patience) as limit:
                status, reason = await self._judged(subject)
            nursery.cancel_scope.cancel()
        if limit.cancel_called:
            return Status.FAILED, late
        return status, reason

    async def _judged(self, subject: Subject) -> tuple[Status, str]:
        try:
            await self.body(subject)
        except Exception as error:  # the edge: whatever an adapter raises is the check's outcome
            return _judgement(error)
        return Status.PASSED, ""


def _judgement(error: Exception) -> tuple[Status, str]:
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, NotKept):
            return Status.FAILED, str(leaf)
    for leaf in leaves:
        if isinstance(leaf, NotTried):
            return Status.NOT_TRIED, str(leaf)
    place = traceback.extract_tb(leaves[0].__traceback__)[-1]
    where = f"{place.filename}:{place.lineno}"
    return Status.FAILED, f"{type(leaves[0]).__name__}: {leaves[0]!s:.300} ({where})"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def _end_processes_after(subject: Subject, seconds: float) -> None:
    await trio.sleep(seconds)
    while True:
        await subject.transport.sweep([subject.run_id], grace=0)
        await trio.sleep(_PAUSE)


CHECKS: dict[str, Check] = {}
"""All checks by their names, in the order in which they are made."""


def check(name: str, promise: str) -> Callable[[_Body], _Body]:
    """Make a function a check. What it raises is its verdict: NotKept, NotTried, or a bug."""

    def register(body: _Body) -> _Body:
        add(Check(name, promise, body))
        return body

    return register


def add(new: Check) -> None:
    """Add a check. Raises ValueError where there is one of that name."""
    if new.name in CHECKS:
        raise ValueError(f"there are two checks {new.name!r}")
    CHECKS[new.name] = new
