"""A workflow is handed over once none of its runs is under way, whatever the reason becomes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import trio
from trio.testing import MockClock

from sortie.daemon.candidacy import Candidacy
from sortie.daemon.hand_over import hand_over_when_asked

LOOKS = 100
"""How often a run is looked for at most within the ten seconds of the test."""


class _Work:
    """A loop with one run under way, until ``worked`` is empty."""

    def __init__(self) -> None:
        self.worked = ["a run"]
        self.looks = 0
        self.over = False

    def snapshot(self) -> SimpleNamespace:
        self.looks += 1
        assert self.looks <= LOOKS, "it looks all the time"
        return SimpleNamespace(worked=self.worked)

    def tell(self, _event: object) -> None:
        pass

    def shut_down(self) -> None:
        self.over = True


async def test_another_reason_does_not_make_it_look_all_the_time(autojump_clock: MockClock) -> None:
    """A daemon that is drained while it hands a workflow over waits on for the end of its runs."""
    candidacy, work = Candidacy("w", 15.0), _Work()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hand_over_when_asked, candidacy, cast(Any, work), lambda _fact: None)
        candidacy.hand_over("moved")
        await trio.sleep(2.0)
        candidacy.hand_over("drained")
        await trio.sleep(8.0)
        assert not work.over
        work.worked = []

    assert work.over
