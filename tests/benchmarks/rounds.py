"""Runs the ways in turns, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import trio

from tests.benchmarks.spending import Spent, spent
from tests.benchmarks.ways import Target, Way, open_ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is run: each way ``batch`` times in each of ``rounds``, one after the other.

    Then each of the named ways as a crowd: so many at once, so many in all, once each round.
    """

    rounds: int = 20
    batch: int = 10
    crowds: Sequence[tuple[str, int, int]] = ()
    crowd_rounds: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one command of a way took, in seconds: medians; ``rate`` is commands a second."""

    way: str
    at_once: int
    commands: int
    latency: float
    slow: float  # nine of ten were faster
    cost: Spent
    rate: float
    phases: tuple[float, float, float] | None = None  # to its start, to its exit, to its end


def measure(target: Target, plan: Plan) -> list[Measured]:
    """Measure everything against one host. To be run in a process that does nothing else."""
    return trio.run(_measure, target, plan)


class _Tally:
    """The rounds of one way with one number at once."""

    def __init__(self, way: Way, at_once: int, count: int) -> None:
        self._way = way
        self._at_once = at_once
        self._count = count
        self._latencies: list[float] = []
        self._costs: list[Spent] = []
        self._rates: list[float] = []

    async def round(self) -> None:
        """Run one round; it is over when all that belongs to it is done."""
        before, began = spent(self._way.helpers), time.perf_counter()
        left = iter(range(self._count))
        async with trio.open_nursery() as nursery:
            for _ in range(self._at_once):
                nursery.start_soon(self._work, left)
        await self._way.settle()
        self._rates.append(self._count / (time.perf_counter() - began))
        self._costs.append((spent(self._way.helpers) - before) / self._count)

    def measured(self) -> Measured:
        """Return the medians, of all commands or of the rounds' means."""
        phases = self._way.phases if self._at_once == 1 else []
        return Measured(
            way=self._way.name,
            at_once=self._at_once,
            commands=len(self._latencies),
            latency=median(self._latencies),
            slow=sorted(self._latencies)[int(len(self._latencies) * 0.9)],
            cost=Spent(
                own=median(cost.own for cost in self._costs),
                children=median(cost.children for cost in self._costs),
            ),
            rate=median(self._rates),
            phases=(
                median(phase.start for phase in phases),
                median(phase.run for phase in phases),
                median(phase.end for phase in phases),
            )
            if phases
            else None,
        )

    async def _work(self, left: Iterator[int]) -> None:
        for _ in left:
            began = time.perf_counter()
            await self._way.once()
            self._latencies.append(time.perf_counter() - began)


async def _measure(target: Target, plan: Plan) -> list[Measured]:
    async with open_ways(target) as ways:
        for way in ways:
            for _ in range(2):  # the first ones import, dial and fill caches
                await way.once()
            way.phases.clear()
        single = [_Tally(way, 1, plan.batch) for way in ways]
        await _rounds(single, plan.rounds)
        measured = [totals.measured() for totals in single]
        by_name = {way.name: way for way in ways}
        crowds = [_Tally(by_name[name], at_once, count) for name, at_once, count in plan.crowds]
        await _rounds(crowds, plan.crowd_rounds)
        return measured + [totals.measured() for totals in crowds]


async def _rounds(tallies: list[_Tally], rounds: int) -> None:
    for number in range(rounds):
        first = number % max(1, len(tallies))  # nobody always follows the same one
        for totals in tallies[first:] + tallies[:first]:
            await totals.round()
