"""A list that is kept up to date by asking what has changed, and whole every ten minutes.

What no longer belongs to a list, because it was deleted, transferred or hidden, is in no answer
about changes; so the list is asked for whole now and then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Generic, TypeVar

import trio

ItemT = TypeVar("ItemT")

SWEEP = 600.0
"""Seconds after which a list is asked for whole again."""

OVERLAP = timedelta(minutes=2)
"""How far before the latest change that was seen is asked from: clocks differ, and what is
committed late has an earlier time."""


class ChangingList(Generic[ItemT]):
    """Items by id as of the last answer.

    ``key_of`` is an item's id; ``changed_at`` its last change by the server's clock.
    Rule: what is known changes only when an answer is whole; one that fails changes nothing.
    """

    def __init__(
        self,
        key_of: Callable[[ItemT], str],
        changed_at: Callable[[ItemT], datetime | None],
        *,
        sweep: float = SWEEP,
    ) -> None:
        self._key_of = key_of
        self._changed_at = changed_at
        self._sweep = sweep
        self._scope: Hashable = None
        self._swept = float("-inf")
        self._cursor: datetime | None = None
        self._items: dict[str, ItemT] = {}

    @property
    def items(self) -> Mapping[str, ItemT]:
        """What is known."""
        return self._items

    def forget(self) -> None:
        """Ask for the whole list next time."""
        self._swept = float("-inf")

    async def refresh(
        self,
        scope: Hashable,
        now: float,
        whole: Callable[[], Awaitable[Iterable[ItemT]]],
        since: Callable[[datetime], Awaitable[Iterable[ItemT]]],
    ) -> Mapping[str, ItemT]:
        """Bring the list up to date and return it.

        ``scope`` is what the list is of: another one is asked for whole. ``since`` returns what
        has changed since then, including what does not belong to the list any more, such as
        issues that were closed. ``now`` is in trio's time.
        """
        cursor, began = self._cursor, trio.current_time()
        if cursor is None or scope != self._scope or now - self._swept >= self._sweep:
            items = {self._key_of(item): item for item in await whole()}
            self._items = {key: self._known(key, item) for key, item in items.items()}
            self._scope, self._swept = scope, now
        else:
            for item in await since(cursor - OVERLAP):
                key = self._key_of(item)
                self._items[key] = self._known(key, item)
        times = [at for at in map(self._changed_at, self._items.values()) if at is not None]
        late = _beyond_overlap(trio.current_time() - began)
        seen = [max(times) - late] if times else []
        self._cursor = max((*seen, *([cursor] if cursor else [])), default=None)
        return self._items

    def _known(self, key: str, item: ItemT) -> ItemT:
        """Return the object that is known already, where it is equal."""
        known = self._items.get(key)
        return known if known is not None and known == item else item

    def put(self, item: ItemT) -> None:
        """Take over what another answer told of an item, if the list has it."""
        key = self._key_of(item)
        if key in self._items:
            self._items[key] = item

    def drop(self, key: str) -> None:
        """Forget an item of which another answer told that it is not there."""
        self._items.pop(key, None)


def _beyond_overlap(elapsed: float) -> timedelta:
    """Return by how much the overlap is too short for an answer that took so many seconds.

    What changed after its page was read is older than the latest change on a later page by that
    time at most. Half of the overlap is kept for clocks, and answers that are no slower than the
    other half ask the same question again.
    """
    return max(timedelta(seconds=elapsed) - OVERLAP / 2, timedelta())
