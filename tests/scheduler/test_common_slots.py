"""Slots of several processes: never too many, whatever is late, lost or old, and all granted again.

The lives here have leaders that die, are paused and followed by others, processes that divide one
after the other, and a record in between, which keeps to the rules of the tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.scheduler import common_slots
from sortie.scheduler.allocator import Allocator, SlotMember
from sortie.scheduler.common_slots import (
    CommonAllocator,
    GrantInForce,
    SlotReport,
    ToldGrants,
    renamed,
    reported,
)
from sortie.scheduler.grants import SlotGrant, SlotUse
from tests.properties import examples

NAMES = ("api", "docs", "web")
PATIENCE = 15.0
HOST = "east"


class Leader:
    """The process that leads a workflow: it starts what it may, and hears late."""

    def __init__(self, name: str, token: int, cap: int, on: int, now: float) -> None:
        self.name, self.token, self.cap = name, token, cap
        self.on, self.wish, self.number = on, 0, 0
        self.alive = True
        self.grant = GrantInForce(token, PATIENCE, now)

    def report(self, host_cap: int | None, most: int, now: float) -> SlotReport:
        """Say how the workflow stands."""
        self.number += 1
        more = {HOST: self.wish} if self.wish else {}
        obeyed = self.grant.at(now)
        use = SlotUse(
            used=self.on,
            by_host={HOST: self.on} if self.on else {},
            more=self.wish,
            more_by_host=more,
            grant=obeyed,
        )
        member = SlotMember(cap=self.cap, host_cap=host_cap, hosts=(HOST,), use=use)
        member = reported(member, str)
        return SlotReport(token=self.token, number=self.number, member=member, most=most)

    def may_start(self, now: float) -> bool:
        """Tell whether it would start a run by what it has heard."""
        grant = self.grant.at(now)
        return self.on < min(self.cap, grant.usable, grant.on(HOST))


class Record:
    """What stands in the tables."""

    def __init__(self) -> None:
        self.reports: dict[str, SlotReport] = {}
        self.told: dict[str, ToldGrants] = {}
        self.divider = 0
        self.tokens = dict.fromkeys(NAMES, 0)

    def put(self, name: str, report: SlotReport) -> None:
        """Take a report in, unless it is old, or of a former leader."""
        if report.token == self.tokens[name] and report.is_newer_than(self.reports.get(name)):
            self.reports[name] = report

    def put_grants(self, divider: int, told: Mapping[str, ToldGrants]) -> bool:
        """Take grants in from the process that divides."""
        if divider == self.divider:
            self.told |= told
        return divider == self.divider


class World:
    """Three workflows and those who divide, in a life that is made from a seed."""

    def __init__(self, seed: int) -> None:
        dice = self.dice = Random(seed)
        self.total = dice.randint(2, 5)
        self.host_cap = dice.choice([None, None, 1, 2])
        self.now = 0.0
        self.caps = {name: dice.randint(2, 6) for name in NAMES}
        self.record = Record()
        self.tokens = 0
        self.leaders: dict[str, Leader] = {}
        self.sent: list[tuple[str, SlotReport]] = []
        self.seen: list[tuple[Leader, ToldGrants, float]] = []
        self.dividers: list[tuple[int, CommonAllocator]] = []
        self.reached: Counter[str] = Counter()
        for name in NAMES:
            self._lead(name, 0)
        self._divide_elsewhere()

    def live(self, steps: int) -> None:
        """Have one thing after the other happen. Raises AssertionError where a rule is broken."""
        likely = {
            self._want: 4,
            self._start: 12,
            self._end: 3,
            self._report: 10,
            self._arrive_late: 4,
            self._divide: 8,
            self._divide_late: 1,
            self._hear: 10,
            self._hear_late: 3,
            self._divide_elsewhere: 2,
            self._die: 1,
            self._take_over: 3,
            self._leave: 1,
        }
        for step in self.dice.choices(list(likely), list(likely.values()), k=steps):
            step()
            self._check()
        self._settle()

    def _check(self) -> None:
        runs = sum(one.on for one in self.leaders.values())
        assert runs <= self.total, f"{runs} runs of {self.total}"
        assert self.host_cap is None or runs <= self.host_cap, f"{runs} runs on {HOST}"

    def _settle(self) -> None:
        """Once all is quiet and each workflow is led, every slot is granted again."""
        self._divide_elsewhere()
        for name in NAMES:
            self._lead(name, self.leaders[name].on)
            self.leaders[name].wish = 99
        for _ in range(8):
            for name, one in self.leaders.items():
                self.record.put(name, one.report(self.host_cap, self.total, self.now))
            self._divide()
            for name, one in self.leaders.items():
                one.grant.hear(self.record.told[name], self.now)
                while one.may_start(self.now):
                    one.on += 1
            self._check()
        most = min(self.total, self.host_cap or self.total, sum(self.caps.values()))
        assert sum(one.on for one in self.leaders.values()) == most, "slots are left over"

    def _one(self) -> Leader:
        return self.leaders[self.dice.choice(NAMES)]

    def _lead(self, name: str, on: int) -> None:
        self.tokens += 1
        self.record.tokens[name] = self.tokens
        self.leaders[name] = Leader(name, self.tokens, self.caps[name], on, self.now)

    def _divide_elsewhere(self) -> None:
        """Another process divides; the former one may not have noticed."""
        self.tokens += 1
        self.record.divider = self.tokens
        self.dividers.append((self.tokens, CommonAllocator(dict(self.record.told))))

    def _led(self) -> frozenset[str]:
        return frozenset(
            name
            for name, one in self.leaders.items()
            if one.alive and (r := self.record.reports.get(name)) and r.token == one.token
        )

    def _want(self) -> None:
        self._one().wish = self.dice.choice([0, 0, 1, 9])

    def _start(self) -> None:
        one = self._one()
        while one.alive and one.wish and one.may_start(self.now):
            one.on, one.wish = one.on + 1, one.wish - 1
            self.reached["start"] += 1

    def _end(self) -> None:
        one = self._one()
        one.on = max(0, one.on - 1)

    def _report(self) -> None:
        one = self._one()
        if one.alive:
            report = one.report(self.host_cap, self.total, self.now)
            self.sent.append((one.name, report))
            if self.dice.random() < 0.6:
                self.record.put(one.name, report)

    def _arrive_late(self) -> None:
        if self.sent:
            self.record.put(*self.dice.choice(self.sent[-30:]))

    def _divide(self) -> None:
        self._divide_at(-1)

    def _divide_late(self) -> None:
        self._divide_at(self.dice.randrange(len(self.dividers)))

    def _divide_at(self, place: int) -> None:
        self.now += self.dice.choice([0.0, 0.0, 1.0, 60.0])
        token, allocator = self.dividers[place]
        news = allocator.allocate(dict(self.record.reports), self._led(), self.now)
        if news and not self.record.put_grants(token, news):
            self.reached["refused"] += 1
            del self.dividers[place]

    def _hear(self) -> None:
        one = self._one()
        told = self.record.told.get(one.name)
        if told is not None:
            self.seen.append((one, told, self.now))
            if self.dice.random() < 0.6:
                one.grant.hear(told, self.now)

    def _hear_late(self) -> None:
        if self.seen:
            one, told, at = self.dice.choice(self.seen[-30:])
            one.grant.hear(told, at)

    def _die(self) -> None:
        """The leader dies; its runs may go on."""
        one = self._one()
        one.alive = False
        self.reached["died with runs"] += one.on > 0

    def _take_over(self) -> None:
        """Another process leads the workflow, which has taken over or ended what it found."""
        former = self.dice.choice(
            [one for one in self.leaders.values() if not one.alive] or [self._one()]
        )
        former.alive = False
        self._lead(former.name, self.dice.randint(0, former.on))

    def _leave(self) -> None:
        """A leader ends in good order, and another leads later."""
        one = self._one()
        if one.alive:
            one.on, one.number, one.alive = 0, one.number + 1, False
            self.record.put(one.name, SlotReport(token=one.token, number=one.number, member=None))


def test_there_are_never_too_many_runs_and_all_slots_are_granted_again() -> None:
    """Whatever dies, is late or is lost, and whichever process divides."""
    reached: Counter[str] = Counter()
    for seed in range(examples(40, 1000)):
        world = World(seed)
        world.live(250)
        reached += world.reached

    assert reached.keys() == {"start", "refused", "died with runs"}


def _forget_the_record(patch: pytest.MonkeyPatch) -> None:
    begin = CommonAllocator.__init__
    patch.setattr(CommonAllocator, "__init__", lambda self, _record: begin(self, {}))


def _take_any_grant(patch: pytest.MonkeyPatch) -> None:
    hear = GrantInForce.hear

    def credulous(self: GrantInForce, told: ToldGrants, at: float) -> None:
        hear(self, replace(told, token=self._token), at)

    patch.setattr(GrantInForce, "hear", credulous)


def _forget_the_dead(patch: pytest.MonkeyPatch) -> None:
    nothing = SlotUse(grant=SlotGrant(number=10**9))
    patch.setattr(common_slots, "_without_leader", lambda member: replace(member, use=nothing))


def _tell_the_last_alone(patch: pytest.MonkeyPatch) -> None:
    told = Allocator.told
    patch.setattr(Allocator, "told", lambda self, name: told(self, name)[-1:])


MISTAKES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "another process begins from nothing": _forget_the_record,
    "a grant of a former leader is obeyed": _take_any_grant,
    "what a dead leader has is free": _forget_the_dead,
    "only the last grant is on record": _tell_the_last_alone,
}


@pytest.mark.full  # it tries the simulation, which alone can change what it says
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulation that finds nothing proves nothing: each planted mistake breaks a life."""
    MISTAKES[mistake](monkeypatch)

    for seed in range(1500):
        try:
            World(seed).live(250)
        except AssertionError:
            return
    raise AssertionError(f"{mistake} was not noticed")


def member(cap: int, used: int = 0, more: int = 0, grant: SlotGrant | None = None) -> SlotMember:
    """Return how a workflow stands that uses this machine alone."""
    use = SlotUse(used=used, more=more, more_by_host={HOST: more}, grant=grant or SlotGrant())
    return SlotMember(cap=cap, hosts=(HOST,), use=use)


def test_the_smallest_limit_that_a_process_was_given_holds() -> None:
    """Of those that lead; without any it is the largest of the workflows' own."""
    reports = {
        "api": SlotReport(token=1, number=1, member=member(9), most=4),
        "docs": SlotReport(token=2, number=1, member=member(2), most=6),
        "web": SlotReport(token=3, number=1, member=member(7)),
    }
    totals = []
    for led in ({"api", "docs", "web"}, {"docs", "web"}, {"web"}, set()):
        allocator = CommonAllocator({})
        allocator.allocate(reports, led, 0.0)
        totals.append(allocator.total)

    assert totals == [4, 6, 7, 4]


def test_workflows_with_processes_of_their_own_limit_each_other_by_nothing() -> None:
    """Nor does one whose leader is dead; a process with several workflows brings the limit."""
    alone = [SlotReport(token=n, number=1, member=member(3, more=9), alone=True) for n in (1, 2)]
    reports = dict(zip(("api", "docs"), alone, strict=True))
    allocator = CommonAllocator({})
    told = allocator.allocate(reports, {"docs"}, 0.0)
    assert told["docs"].grants[-1].slots == 3

    reports["web"] = SlotReport(token=3, number=1, member=member(2, more=9))
    allocator.allocate(reports, {"docs", "web"}, 1.0)
    assert allocator.total == 3


def test_what_a_dead_leader_had_counts_until_another_reports() -> None:
    """It wants nothing more, its guaranteed slots are lent, and what it was told is not granted
    again."""
    allocator = CommonAllocator({})
    api = SlotReport(token=1, number=1, member=replace(member(4, more=4), guaranteed=3), most=4)
    docs = SlotReport(token=2, number=1, member=member(4), most=4)
    told = allocator.allocate({"api": api, "docs": docs}, {"api", "docs"}, 0.0)
    assert told["api"].grants[-1].slots == 4

    wants = SlotReport(token=2, number=2, member=member(4, more=4), most=4)
    told |= allocator.allocate({"api": api, "docs": wants}, {"docs"}, 1.0)
    assert told["docs"].grants[-1].slots == 0

    after = SlotReport(token=3, number=1, member=member(4, used=1), most=4)
    told |= allocator.allocate({"api": after, "docs": wants}, {"api", "docs"}, 2.0)
    assert told["docs"].grants[-1].slots == 3


def test_an_older_report_counts_no_more() -> None:
    """What a leader has started since is known already, and is not granted to others."""
    allocator = CommonAllocator({})
    few = SlotReport(token=1, number=1, member=member(4, used=1, more=0), most=4)
    many = SlotReport(token=1, number=2, member=member(4, used=4, more=0), most=4)
    docs = SlotReport(token=2, number=1, member=member(4, more=4), most=4)
    allocator.allocate({"api": many}, {"api"}, 0.0)

    told = allocator.allocate({"api": few, "docs": docs}, {"api", "docs"}, 1.0)

    assert "docs" not in told or told["docs"].grants[-1].slots == 0


def test_another_process_goes_on_with_what_was_told() -> None:
    """It lowers first, raises only by what is free for certain, and its numbers are greater."""
    api = SlotReport(token=1, number=1, member=member(4, more=4), most=4)
    docs = SlotReport(token=2, number=1, member=member(4), most=4)
    first = CommonAllocator({})
    record = first.allocate({"api": api, "docs": docs}, {"api", "docs"}, 0.0)

    wants = SlotReport(token=2, number=2, member=member(4, more=4), most=4)
    second = CommonAllocator(record)
    later = second.allocate({"api": api, "docs": wants}, {"api", "docs"}, 1.0)

    assert [grant.slots for grant in later["api"].grants] == [4, 2]
    assert later["api"].grants[-1].number > record["api"].grants[-1].number
    assert "docs" not in later


def test_a_leader_without_news_starts_nothing_more() -> None:
    """Its grant is in force still for those who divide, and it starts again with the next news."""
    grant = SlotGrant(number=1, slots=2, total=4, hosts={HOST: 2})
    told = ToldGrants(token=7, grants=(grant,))
    heard = GrantInForce(7, PATIENCE, 0.0)
    heard.hear(told, 10.0)
    fresh, stale = heard.at(24.9), heard.at(25.0)
    heard.hear(replace(told, token=8), 26.0)

    assert (fresh.usable, stale.usable, stale.slots) == (2, 0, 2)
    assert "no daemon divides the slots" in stale.sentence
    assert "the daemons of this database" in fresh.sentence
    assert heard.at(26.0).usable == 0
    heard.hear(told, 27.0)
    assert heard.at(27.0) == fresh


@given(st.dictionaries(st.sampled_from(["local", "east"]), st.integers(0, 4)))
def test_hosts_have_a_name_for_all(by_host: dict[str, int]) -> None:
    """This machine is another host for each daemon; what is renamed there and back is the same."""
    names = {"local": "local box", "east": "east"}
    back = {name: host for host, name in names.items()}
    grant = SlotGrant(number=1, slots=4, hosts=by_host)

    there = renamed(grant, lambda host: names[host])

    assert set(there.hosts) == {names[host] for host in by_host}
    assert renamed(there, lambda name: back[name]) == grant
