"""Days of three schedulers that share the slots of a process, each day made from a seed.

The schedulers and the allocator are the real ones. Trackers answer late, grants arrive late, runs
end when they like; demand comes and goes, shares are reloaded, and workflows or the whole process
crash.

The bound: a workflow that could start an issue starts one within ``bound`` seconds. So an issue
with K workable ones before it in its workflow starts within K + 1 times that.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random
from uuid import UUID

from msgspec.structs import replace

from sortie.model import LOCAL, Finish, Finished, Issue, IssueId, RunId, RunReport
from sortie.scheduler import Decision, Event, Policy, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.allocator import Allocator, SlotMember
from sortie.scheduler.grants import SlotGrant
from tests.sim.recording import RecordedLife

HOURS = 24
LOOK_EVERY = 10.0
"""Seconds between two looks of the allocator."""

LONGEST_RUN = 900.0
POLL = 30.0
SLACK = 10.0
"""Seconds for answers and grants on their way."""

MOST_WAITING = 20
HEAVIEST = 3
NAMES = ("api", "docs", "web")


@dataclass
class Team:
    """A workflow: its scheduler, its tracker, and what was noted of it."""

    name: str
    policy: Policy
    weight: int = 1
    guaranteed: int = 0
    issues: dict[IssueId, Issue] = field(default_factory=dict)
    running: dict[RunId, do.StartWorker] = field(default_factory=dict)
    grants: list[SlotGrant] = field(default_factory=list)
    scheduler: Scheduler | None = None
    recorded: RecordedLife = field(default_factory=lambda: RecordedLife(0))
    life: int = 0
    booted_at: float = 0.0
    waits_since: float | None = None
    short_since: float | None = None
    longest_wait: float = 0.0
    started: int = 0


class SharedDay:
    """One seed's worth of a process with three workflows."""

    def __init__(self, seed: int) -> None:
        dice = self.dice = Random(seed)
        self.now = 0.0
        self.total = dice.randint(1, 6)
        self.host_limit = dice.choice([None, None, 1, 2, 3])
        hosts = dice.choice([(LOCAL,), ("east", "west")])
        self.teams = {name: Team(name, self._policy(hosts)) for name in NAMES}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._names = count(), count(1)
        self.allocator = Allocator()
        self._settled_at = 0.0
        self.reached: Counter[str] = Counter()
        self._reload()
        for team in self.teams.values():
            self._boot(team)
        self._later(0.0, self._look_again)
        self._later(dice.uniform(0, 600), self._happen)

    def _policy(self, hosts: tuple[str, ...]) -> Policy:
        dice = self.dice
        mine = hosts if dice.random() < 0.7 else (LOCAL,)
        return Policy(
            active_states=frozenset({"todo"}),
            terminal_states=frozenset({"done"}),
            handoff_state="review",
            max_concurrent_agents=dice.randint(1, 6),
            hosts=mine,
            max_per_host=self.host_limit if dice.random() < 0.7 else None,
            poll_interval=POLL,
        )

    @property
    def bound(self) -> float:
        """Seconds within which a workflow starts an issue that it could start: the lightest one
        has a slot for this part of the time at least, beside the longest run of another."""
        shares = 1 + HEAVIEST * (len(NAMES) - 1)
        return (shares + 1) * (LONGEST_RUN + 30.0) + POLL + SLACK

    def live(self, hours: float = HOURS) -> None:
        """Live the day. Raises AssertionError where a rule is broken."""
        end = hours * 3600.0
        while self.now < end:
            wakeups = [t.scheduler.wakeup_at() for t in self.teams.values() if t.scheduler]
            at = min([*wakeups, self._events[0][0], end])
            self.now = max(self.now, at)
            if self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
                continue
            for team in self.teams.values():
                if team.scheduler is not None and team.scheduler.wakeup_at() <= self.now:
                    self._tell(team, ev.TimePassed())
        for team in self.teams.values():
            self._check_wait(team)
            self._replay(team)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), action))

    def _boot(self, team: Team) -> None:
        team.life, team.booted_at = team.life + 1, self.now
        team.waits_since = team.short_since = None
        team.scheduler = Scheduler(
            team.policy,
            now=self.now,
            new_run_id=RunIds(UUID(int=team.life * 16 + NAMES.index(team.name))),
            grant=SlotGrant(),
        )
        self._replay(team)
        team.recorded = RecordedLife(team.life)
        team.grants.clear()
        self._settled_at = self.now

    def _replay(self, team: Team) -> None:
        """See that what is recorded of a life gives the same decisions again."""
        differs = team.recorded.replayed_otherwise()
        assert differs is None, differs

    def _tell(self, team: Team, event: Event) -> None:
        assert team.scheduler is not None
        for decision in team.recorded.decide(team.scheduler, event, self.now):
            self._perform(team, decision)

    def _answer(self, team: Team, seconds: float, event: Callable[[], Event]) -> None:
        """Have an event arrive later, if this life of the workflow lasts."""
        life = team.life

        def arrive() -> None:
            if team.life == life and team.scheduler is not None:
                self._tell(team, event())

        self._later(seconds, arrive)

    def _perform(self, team: Team, decision: Decision) -> None:
        dice = self.dice
        match decision:
            case do.Poll():
                self._answer(
                    team,
                    dice.uniform(0.05, 2.0),
                    lambda: ev.CandidatesFetched(
                        tuple(i for i in team.issues.values() if i.state == "todo")
                    ),
                )
            case do.Refresh(token, ids):
                self._answer(
                    team,
                    dice.uniform(0.05, 1.0),
                    lambda: ev.IssuesRefreshed(
                        token, ids, tuple(team.issues[i] for i in sorted(ids) if i in team.issues)
                    ),
                )
            case do.HandOff(token, issue, state):
                team.issues[issue.id] = replace(issue, state=state)
                self._answer(
                    team,
                    dice.uniform(0.05, 1.0),
                    lambda: ev.TransitionAnswered(issue.id, token, state=state),
                )
            case do.StartWorker():
                self._start(team, decision)
            case do.StopWorker():
                raise AssertionError("a run was stopped for want of a slot")
            case _:
                pass

    def _start(self, team: Team, start: do.StartWorker) -> None:
        team.running[start.run_id] = start
        self._check_limits(start.host)
        self._check_wait(team)
        team.waits_since, team.started = None, team.started + 1
        ended = RunReport(end=Finished(finish=Finish.REVIEW), turns=1)

        def exited() -> Event:
            del team.running[start.run_id]
            return ev.WorkerExited(start.run_id, ended)

        self._answer(team, self.dice.uniform(5.0, LONGEST_RUN), exited)

    def _check_limits(self, host: str) -> None:
        runs = [run for team in self.teams.values() for run in team.running.values()]
        assert len(runs) <= self.total, f"{len(runs)} runs of {self.total}"
        # A limit is in force while its workflow runs, once the others have been told of it.
        named = [
            team.policy.max_per_host
            for team in self.teams.values()
            if host in team.policy.hosts
            and team.policy.max_per_host is not None
            and team.scheduler is not None
            and self.now - team.booted_at > LOOK_EVERY + SLACK
        ]
        there = sum(run.host == host for run in runs)
        assert not named or there <= min(named), f"{there} runs on {host} of {min(named)}"

    def _check_wait(self, team: Team) -> None:
        if team.waits_since is not None:
            waited = self.now - team.waits_since
            team.longest_wait = max(team.longest_wait, waited)
            assert waited <= self.bound, f"{team.name} starves for {waited:.0f} s"

    # The allocator

    def _look_again(self) -> None:
        self._look()
        self._later(LOOK_EVERY, self._look_again)

    def _look(self) -> None:
        members = {
            team.name: SlotMember(
                weight=team.weight,
                guaranteed=team.guaranteed,
                cap=team.policy.max_concurrent_agents,
                host_cap=team.policy.max_per_host,
                hosts=team.policy.hosts,
                use=team.scheduler.slot_use(self.now),
            )
            for team in self.teams.values()
            if team.scheduler is not None
        }
        for name, grant in self.allocator.allocate(self.total, members, self.now).items():
            team = self.teams[name]
            team.grants.append(grant)
            self._answer(team, self.dice.uniform(0.0, 0.5), partial(self._granted, team))
        for name, member in members.items():
            self._note(self.teams[name], member)

    def _granted(self, team: Team) -> Event:
        """Return the next grant: they arrive in the order in which they were told."""
        return ev.SlotsGranted(team.grants.pop(0))

    def _note(self, team: Team, member: SlotMember) -> None:
        use = member.use
        if not use.more:
            team.waits_since = team.short_since = None
            return
        team.waits_since = self.now if team.waits_since is None else team.waits_since
        kept = min(team.guaranteed, member.cap, self.total)
        # A guarantee that is new, or whose workflow was away, is had as runs end; and no run goes
        # to a host that has no room.
        is_settled = self.now - self._settled_at > LONGEST_RUN + SLACK
        has_room = all(m.host_cap is None for m in [member]) and self.host_limit is None
        if use.used >= kept or not (is_settled and has_room):
            team.short_since = None
            return
        team.short_since = self.now if team.short_since is None else team.short_since
        late = self.now - team.short_since
        assert late <= POLL + SLACK, f"{team.name} has not had what is guaranteed for {late:.0f} s"
        self.reached["guaranteed"] += 1

    # What happens

    def _happen(self) -> None:
        dice = self.dice
        what = dice.choices(
            [self._demand, self._reload, self._crash, self._crash_all], [20, 4, 2, 1]
        )[0]
        what()
        self.reached[what.__name__] += 1
        self._later(dice.expovariate(1 / 900.0), self._happen)

    def _demand(self) -> None:
        """Let somebody write issues: a few, or a heap of them."""
        team = self.teams[self.dice.choice(NAMES)]
        if sum(issue.state == "todo" for issue in team.issues.values()) > MOST_WAITING:
            return
        for _ in range(self.dice.choice([1, 2, 5, 20])):
            name = IssueId(f"{team.name}-{next(self._names)}")
            team.issues[name] = Issue(id=name, identifier=name.upper(), title="Do", state="todo")

    def _reload(self) -> None:
        """Change the shares; there is always a slot that nobody is guaranteed."""
        left = self.total - 1
        for team in self.teams.values():
            team.weight = self.dice.randint(1, HEAVIEST)
            team.guaranteed = min(left, self.dice.choice([0, 0, 1, 2]))
            left -= team.guaranteed
        self._settled_at = self.now

    def _crash(self) -> None:
        """End a workflow; its runs end before it is begun again."""
        team = self.teams[self.dice.choice(NAMES)]
        if team.scheduler is None:
            return
        team.life += 1
        team.scheduler, life = None, team.life

        def gone() -> None:
            if team.life == life:
                team.running.clear()
                self.allocator.forget(team.name)
                self._later(self.dice.uniform(0.0, 60.0), again)

        def again() -> None:
            if team.life == life and team.scheduler is None:
                self._boot(team)

        gone_after = self.dice.uniform(0.0, 5.0)
        if team.running:
            team.running.clear()  # the supervisor leaves the slots to it until then
        self._later(gone_after, gone)

    def _crash_all(self) -> None:
        """Kill the process: nothing of it is left."""
        self.allocator = Allocator()
        for team in self.teams.values():
            team.running.clear()
            self._boot(team)


def live_through(seed: int, hours: float = HOURS) -> SharedDay:
    """Live one day; return it for what it reached."""
    day = SharedDay(seed)
    day.live(hours)
    return day
