"""The common slots of several schedulers: fairly divided, never too many, and nobody starves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sortie.scheduler.allocator import (
    Allocator,
    SlotClaim,
    SlotMember,
    fair_shares,
    guaranteed_slots,
    limits,
)
from sortie.scheduler.grants import SlotGrant, SlotUse
from tests.properties import examples

TOTALS = st.integers(0, 12)
CLAIMS = st.builds(
    SlotClaim,
    weight=st.integers(1, 5),
    guaranteed=st.integers(0, 6),
    cap=st.integers(1, 12),
    used=st.integers(0, 8),
    more=st.integers(0, 20),
    owed=st.integers(-50, 50).map(float),
    kept=st.booleans(),
)
DIVIDED = st.dictionaries(st.sampled_from("abcde"), CLAIMS, min_size=1)


def claim(more: int, weight: int = 1, guaranteed: int = 0, cap: int = 99) -> SlotClaim:
    """Return what a workflow wants that has nothing yet."""
    return SlotClaim(weight=weight, guaranteed=guaranteed, cap=cap, used=0, more=more)


@pytest.mark.parametrize(
    ("total", "claims", "divided"),
    [
        (10, {"a": claim(99), "b": claim(99)}, {"a": 5, "b": 5}),
        (10, {"a": claim(99, weight=4), "b": claim(99)}, {"a": 8, "b": 2}),
        (10, {"a": claim(99), "b": claim(2)}, {"a": 8, "b": 2}),
        (10, {"a": claim(99), "b": claim(0)}, {"a": 10, "b": 0}),
        (10, {"a": claim(99), "b": claim(0, guaranteed=3)}, {"a": 7, "b": 3}),
        (10, {"a": claim(99), "b": claim(99, guaranteed=4)}, {"a": 3, "b": 7}),
        (10, {"a": claim(99, cap=2), "b": claim(99)}, {"a": 2, "b": 8}),
        (4, {"a": claim(1, guaranteed=3), "b": claim(1, guaranteed=3)}, {"a": 3, "b": 1}),
        (9, {"a": claim(1), "b": claim(3), "c": claim(99)}, {"a": 1, "b": 3, "c": 5}),
    ],
)
def test_slots_are_divided(
    total: int, claims: Mapping[str, SlotClaim], divided: Mapping[str, int]
) -> None:
    """Guaranteed slots first, then by weight, and what one does not want goes to the others."""
    assert limits(total, claims) == divided


@given(TOTALS, DIVIDED)
def test_all_is_divided_and_nothing_more(total: int, claims: dict[str, SlotClaim]) -> None:
    """The limits are the total at most, guaranteed slots are kept, nobody gets what it does not
    want, and nothing is left over while somebody wants it."""
    divided, kept = limits(total, claims), guaranteed_slots(total, claims)

    assert sum(divided.values()) <= total
    assert all(kept[name] <= divided[name] for name in claims)
    assert all(divided[n] <= max(kept[n], one.want) for n, one in claims.items())
    if sum(divided.values()) < total:
        assert all(divided[name] >= one.want for name, one in claims.items())


@given(TOTALS, DIVIDED)
def test_shares_are_max_min_fair(total: int, claims: dict[str, SlotClaim]) -> None:
    """Who gets less than it wants has at least as much, by its weight, as any other."""
    kept, shares = guaranteed_slots(total, claims), fair_shares(total, claims)
    level = {name: share / claims[name].weight for name, share in shares.items()}

    for name, one in claims.items():
        if kept[name] + shares[name] < one.want:
            assert level[name] >= max(level.values())
    assert {name: math.floor(share) for name, share in shares.items()} == {
        name: min(slots - kept[name], math.floor(shares[name]))
        for name, slots in limits(total, claims).items()
    }


@dataclass
class Pretender:
    """A scheduler that starts what it may, and hears of its grants late."""

    cap: int
    host_cap: int | None
    hosts: tuple[str, ...]
    weight: int = 1
    guaranteed: int = 0
    wish: int = 0
    on: list[str] = field(default_factory=list)
    grant: SlotGrant = field(default_factory=SlotGrant)
    queue: list[SlotGrant] = field(default_factory=list)

    def member(self) -> SlotMember:
        """Return how the allocator sees it."""
        open_hosts = {
            host: self.wish
            for host in self.hosts
            if self.host_cap is None or self.on.count(host) < self.host_cap
        }
        return SlotMember(
            weight=self.weight,
            guaranteed=self.guaranteed,
            cap=self.cap,
            host_cap=self.host_cap,
            hosts=self.hosts,
            use=SlotUse(
                used=len(self.on),
                by_host={host: self.on.count(host) for host in set(self.on)},
                more=self.wish if open_hosts else 0,
                more_by_host=open_hosts,
                grant=self.grant,
            ),
        )

    def start(self) -> bool:
        """Start a run, if the grant allows one."""
        for host in sorted(self.hosts, key=self.on.count):
            own = math.inf if self.host_cap is None else self.host_cap
            free = self.on.count(host) < min(own, self.grant.on(host))
            if self.wish and free and len(self.on) < min(self.cap, self.grant.slots):
                self.wish -= 1
                self.on.append(host)
                return True
        return False


CAPS = st.tuples(
    st.integers(1, 6),
    st.sampled_from([None, None, 1, 2, 3]),
    st.sampled_from([("local",), ("east", "west"), ("east",)]),
)


class Sharing(RuleBasedStateMachine):
    """Demand that comes and goes, late news, reloads and crashes, in any order."""

    @initialize(caps=st.lists(CAPS, min_size=2, max_size=4), total=st.integers(1, 6))
    def begin(self, caps: list[tuple[int, int | None, tuple[str, ...]]], total: int) -> None:
        self.total, self.now, self.allocator = total, 0.0, Allocator()
        self.caps = dict(zip("abcd", caps, strict=False))
        self.all = {name: Pretender(*cap) for name, cap in self.caps.items()}

    def _one(self, number: int) -> Pretender:
        return list(self.all.values())[number % len(self.all)]

    @rule(number=st.integers(0, 3), wish=st.integers(0, 9))
    def want(self, number: int, wish: int) -> None:
        self._one(number).wish = wish

    @rule(number=st.integers(0, 3))
    def hear(self, number: int) -> None:
        one = self._one(number)
        if one.queue:
            one.grant = one.queue.pop(0)

    @rule(number=st.integers(0, 3))
    def start(self, number: int) -> None:
        one = self._one(number)
        before = self._allowed()
        if one.start():
            assert before, "a run was started beyond the common limit"

    def _allowed(self) -> bool:
        return sum(len(one.on) for one in self.all.values()) < self.total

    @rule(number=st.integers(0, 3))
    def end(self, number: int) -> None:
        one = self._one(number)
        if one.on:
            one.on.pop(0)

    @rule(number=st.integers(0, 3), weight=st.integers(1, 4), guaranteed=st.integers(0, 3))
    def reload(self, number: int, weight: int, guaranteed: int) -> None:
        one = self._one(number)
        one.weight, one.guaranteed = weight, guaranteed

    @rule(number=st.integers(0, 3))
    def crash(self, number: int) -> None:
        name = list(self.all)[number % len(self.all)]
        self.all[name] = Pretender(*self.caps[name])
        self.allocator.forget(name)

    @rule(seconds=st.sampled_from([0.0, 1.0, 100.0]))
    def allocate(self, seconds: float) -> None:
        self.now += seconds
        members = {name: one.member() for name, one in self.all.items()}
        for name, grant in self.allocator.allocate(self.total, members, self.now).items():
            self.all[name].queue.append(grant)

    @invariant()
    def never_too_many(self) -> None:
        if not hasattr(self, "all"):
            return
        assert sum(len(one.on) for one in self.all.values()) <= self.total
        for host in ("local", "east", "west"):
            named = [o.host_cap for o in self.all.values() if host in o.hosts and o.host_cap]
            if named:
                assert sum(one.on.count(host) for one in self.all.values()) <= min(named)
        # Whatever is still on its way to a scheduler may come true at any moment.
        most = {
            name: max(len(one.on), one.grant.slots, *(g.slots for g in one.queue), 0)
            for name, one in self.all.items()
        }
        assert sum(most.values()) <= self.total


Sharing.TestCase.settings = settings(
    max_examples=examples(75, 150), stateful_step_count=60, deadline=None
)
TestSharing = Sharing.TestCase


def settled(allocator: Allocator, all_: Mapping[str, Pretender], total: int, now: float) -> None:
    """Let grants and starts follow each other until nothing moves."""
    for _ in range(20):
        members = {name: one.member() for name, one in all_.items()}
        for name, grant in allocator.allocate(total, members, now).items():
            all_[name].grant = grant
        while any(one.start() for one in all_.values()):
            pass


def test_one_slot_goes_round() -> None:
    """Where there is less than a slot for each, it changes hands as runs end: nobody starves."""
    all_ = {name: Pretender(9, None, ("local",), wish=10**6) for name in "abc"}
    allocator, served = Allocator(), []
    for minute in range(60):
        settled(allocator, all_, 1, minute * 60.0)
        (name,) = (name for name, one in all_.items() if one.on)
        served.append(name)
        settled(allocator, all_, 1, minute * 60.0 + 59.0)
        all_[name].on.clear()

    assert all(served.count(name) == pytest.approx(20, abs=1) for name in "abc"), served
    for name in "abc":
        waits = [n for n, who in enumerate(served) if who == name]
        assert max(b - a for a, b in pairwise(waits)) <= 5


def test_weights_hold_over_time() -> None:
    """Also where slots cannot be divided, each has its share by weight in the long run."""
    all_ = {
        "a": Pretender(9, None, ("local",), weight=3, wish=10**6),
        "b": Pretender(9, None, ("local",), weight=1, wish=10**6),
    }
    allocator, held = Allocator(), {"a": 0, "b": 0}
    for minute in range(400):
        settled(allocator, all_, 2, minute * 60.0)
        for name, one in all_.items():
            held[name] += len(one.on)
            if one.on and (minute + len(name)) % 2:
                one.on.pop(0)

    assert held["a"] / held["b"] == pytest.approx(3, rel=0.15)


def test_a_guaranteed_slot_is_there_at_once() -> None:
    """What is guaranteed is not lent, so it is had without waiting for anybody's run."""
    all_ = {
        "a": Pretender(9, None, ("local",), wish=99),
        "b": Pretender(9, None, ("local",), guaranteed=2),
    }
    allocator = Allocator()
    settled(allocator, all_, 5, 0.0)
    assert len(all_["a"].on) == 3

    all_["b"].wish = 9
    while all_["b"].start():
        pass
    assert len(all_["b"].on) == 2


def test_what_is_lent_comes_back_as_runs_end() -> None:
    """No run is ended for it; each slot that falls free goes to whom it belongs."""
    all_ = {name: Pretender(9, None, ("local",)) for name in "ab"}
    all_["a"].wish, allocator = 99, Allocator()
    settled(allocator, all_, 4, 0.0)
    assert len(all_["a"].on) == 4

    all_["b"].wish = 99
    settled(allocator, all_, 4, 1.0)
    assert (len(all_["a"].on), len(all_["b"].on)) == (4, 0)
    for ended in (1, 2):
        all_["a"].on.pop()
        settled(allocator, all_, 4, 1.0 + ended)
        assert (len(all_["a"].on), len(all_["b"].on)) == (4 - ended, ended)


def test_a_busy_host_takes_no_slots_from_others() -> None:
    """A workflow whose host is full does not hold slots that another could use."""
    all_ = {
        "a": Pretender(9, 1, ("east",), wish=99),
        "b": Pretender(9, None, ("local",), wish=99),
    }
    allocator = Allocator()
    settled(allocator, all_, 6, 0.0)

    assert (len(all_["a"].on), len(all_["b"].on)) == (1, 5)
