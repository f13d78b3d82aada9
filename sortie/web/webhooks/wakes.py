"""What deliveries name, collected for a second, so that a burst of them is one event."""

from __future__ import annotations

from collections.abc import Callable

import trio
from msgspec import Struct, field

from sortie.model.webhooks import Mention, joined
from sortie.scheduler.events import DeliveriesSeen

COLLECTED = 1.0
"""Seconds for which deliveries are collected."""

MOST_MENTIONS = 200
"""Deliveries of one kind that are collected; where more come, all is looked at."""

Tell = Callable[[DeliveriesSeen], object]


class _Collected(Struct, kw_only=True):
    since: float
    mentions: list[Mention] = field(default_factory=list)
    overflowed: bool = False


class CollectedWakes:
    """The mentions of deliveries for one workflow, by kind; ``tell`` is told of them."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._by_kind: dict[str, _Collected] = {}

    def add(self, kind: str, mention: Mention, now: float) -> None:
        """Collect what a delivery names."""
        known = self._by_kind.setdefault(kind, _Collected(since=now))
        if len(known.mentions) < MOST_MENTIONS:
            known.mentions.append(mention)
        else:
            known.overflowed = True

    def hand_on(self, now: float) -> None:
        """Tell what was collected."""
        collected, self._by_kind = self._by_kind, {}
        for kind, one in collected.items():
            self._tell(
                DeliveriesSeen(
                    kind=kind,
                    mentions=joined(one.mentions),
                    waited=max(0.0, now - one.since),
                    overflowed=one.overflowed,
                )
            )


async def wait_for_more() -> None:
    """Wait until what belongs together has come."""
    await trio.sleep(COLLECTED)
