"""The rows that can be profiled, and a profile: a row measured with one observer after another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks import refresh, remote_turn, runs, sessions, turn
from tests.benchmarks.place import Observer, observed_by
from tests.benchmarks.profile.account import Account, Sampler
from tests.benchmarks.profile.machine_parts import of_machine, system_calls
from tests.benchmarks.profile.parts import fold, outside, read_stacks
from tests.benchmarks.profile.samplers import Looks, program
from tests.benchmarks.programs import counted_sortie
from tests.benchmarks.row import Measure, Scale, Value
from tests.e2e.place import SORTIE

STACKS_RATE, MACHINE_RATE = 400, 1999
"""Samples a second; one of them is odd, so that it is not in step with what happens regularly."""

CPU = "processor time of the daemon until then"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiled:
    """A row, and where its measure tells the daemon's processor time: ``unit`` is ``ms``, or ``%``
    of a core.

    ``times`` is how many times as often the row is repeated as for the table, ``short_times`` the
    same of the short mode: a sampler takes a moment to begin, and must not find all done.
    """

    name: str
    unit: str
    measure: Measure
    cpu: Callable[[Mapping[str, Value]], float]
    times: int = 1
    short_times: int = 4


def _row(name: str) -> Callable[[Mapping[str, Value]], float]:
    return lambda values: values[name].ours


PROFILED = (
    Profiled(
        name="turn.cpu",
        unit="ms",
        measure=turn.turns,
        cpu=_row("turn.cpu"),
        times=4,
        short_times=40,
    ),
    Profiled(name="runs.8.cpu", unit="ms", measure=runs.eight_slots, cpu=_row("runs.8.cpu")),
    Profiled(name="runs.64.cpu", unit="ms", measure=runs.sixty_four_slots, cpu=_row("runs.64.cpu")),
    Profiled(
        name="refresh",
        unit="ms",
        measure=refresh.refresh,
        cpu=lambda values: values["refresh"].also[CPU],
        times=2,
    ),
    Profiled(name="talking.200", unit="%", measure=sessions.talking, cpu=_row("talking.200")),
    Profiled(
        name="talking.1000.share",
        unit="%",
        measure=sessions.thousand,
        cpu=_row("talking.1000.share"),
    ),
    Profiled(
        name="remote.cpu",
        unit="ms",
        measure=remote_turn.remote_turns,
        cpu=_row("remote.cpu"),
        times=4,
        short_times=20,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where the processor time of a row goes; all amounts are in its unit, but for the counts,
    which are for one of what the row measures, or for a second where its unit is ``%``.

    ``parts`` and ``machine`` come to ``amount`` each, what is in no part included. ``own`` is how
    much of the parts is in their own lines, ``functions`` are our innermost ones, with what
    libraries do for them. ``explained`` is what the samples come to, of the CPU
    clock, and ``sampled`` what the row took while they were taken.
    """

    name: str
    unit: str
    amount: float
    parts: Mapping[str, float]
    own: Mapping[str, float]
    functions: Mapping[str, float]
    waiting: float
    sampled: float
    explained: float
    machine: Mapping[str, float]
    machine_explained: float
    counts: Mapping[str, float]


def profile(row: Profiled, short: bool) -> Profile:
    """Measure a row with nobody who looks on, then with each of the programs that there are.

    ``py-spy`` must be there.
    """
    scale = Scale(short=short, times=row.short_times if short else row.times)
    with TemporaryDirectory(prefix="sortie-profile-") as place:
        directory = Path(place)
        alone = _Pass(row, scale, counters=directory / "counters")
        stacks = _Pass(row, scale, looks=(looks := Looks(directory, STACKS_RATE)).of_py_spy)
        machine = Looks(directory, MACHINE_RATE)
        run = _Pass(row, scale, looks=machine.of_perf) if program("perf") else None
        calls = Looks(directory, 0)
        traced = _Pass(row, scale, looks=calls.of_strace) if program("strace") else None
    folded = fold(chain.from_iterable(map(read_stacks, looks.texts)), looks.unreadable)
    without = outside(folded, looks.rate, stacks.account.threads)
    seconds = {part: count / looks.rate for part, count in folded.parts.items()}
    seconds |= {f"without the lock: {kind}": amount for kind, amount in without.items()}
    kinds = of_machine(machine.texts)
    counts = dict(alone.each(alone.account.counts))
    counts["ms of collections"] = 1e3 * counts.pop("seconds of collections")
    if traced is not None:
        called = traced.each(system_calls(calls.texts))
        counts["system calls"] = sum(called.values())
        counts |= {f"of them {name}": amount for name, amount in called.items()}
    each = alone.amount / sum(seconds.values()) / looks.rate
    return Profile(
        name=row.name,
        unit=row.unit,
        amount=alone.amount,
        parts=_scaled(seconds, alone.amount),
        own=_scaled(folded.own, folded.own.total() * each),
        functions=_scaled(folded.functions, folded.functions.total() * each),
        waiting=stacks.each({"": 1e3 * folded.waiting / looks.rate})[""],
        sampled=stacks.amount,
        explained=folded.total / looks.rate / stacks.account.clock,
        machine=_scaled(kinds, alone.amount),
        machine_explained=0.0 if run is None else kinds.total() / machine.rate / run.account.clock,
        counts=counts,
    )


class _Pass:
    """A row, measured while a sampler looked on; ``counters`` is a file to count in."""

    def __init__(
        self,
        row: Profiled,
        scale: Scale,
        looks: Sampler = lambda _: nullcontext(),
        counters: Path | None = None,
    ) -> None:
        self.account = Account(counters=counters)
        words: tuple[str, ...] = (SORTIE,)
        if counters is not None:
            counters.write_bytes(bytes(8 * len(counted_sortie.CELLS)))
            words = (sys.executable, counted_sortie.__file__, str(counters))
        observer = Observer(program=words, watch=lambda pid: self.account.window(pid, looks))
        with observed_by(observer):
            self.amount = row.cpu(row.measure(scale))
        self._unit = row.unit

    def each(self, counts: Mapping[str, float]) -> dict[str, float]:
        """Return counts for one of what the row measures, or for a second."""
        account = self.account
        many = account.seconds if self._unit == "%" else account.clock * 1e3 / self.amount
        return {name: count / many for name, count in counts.items()}


def _scaled(parts: Mapping[str, float], total: float) -> dict[str, float]:
    """Return parts so that they come to a total, the largest first."""
    whole = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda item: -item[1])
    return {name: amount / whole * total for name, amount in ordered}
