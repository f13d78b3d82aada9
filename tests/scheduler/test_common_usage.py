"""Usage limits of accounts among workflows of several daemons: held together, tried by one."""

from __future__ import annotations

from msgspec.structs import replace

from sortie.model import RunId
from sortie.scheduler import events as ev
from sortie.scheduler.common_usage import (
    CLAIM_SECONDS,
    ClaimTrial,
    CommonLimit,
    LimitFollower,
    PutMet,
    PutOver,
    Step,
)
from sortie.scheduler.usage_limits import UsageLimit, UsageLimits

ACCOUNT = "kiro kiro-cli"


class Workflow:
    """One workflow with its limits, and a leader that may be followed by another."""

    def __init__(self, token: int) -> None:
        self.limits = UsageLimits()
        self.token = token
        self.follower = LimitFollower(token)
        self.wants = True
        self.kept: frozenset[str] = frozenset()
        self.runs = 0

    @property
    def limit(self) -> UsageLimit | None:
        """The limit that holds it."""
        return self.limits.of(ACCOUNT)

    def tell(self, event: ev.UsageLimitMet | ev.UsageLimitPassed, now: float) -> None:
        """Take in what the others say, as the scheduler does."""
        if isinstance(event, ev.UsageLimitPassed):
            self.limits.end_pause(event.account, now)
        else:
            self.limits.met(ACCOUNT, "m", now, seconds=event.seconds, met_here=bool(event.run_id))

    def start(self) -> None:
        """Start a run, if the limit lets it; it tries the limit if there is one."""
        limit = self.limit
        if limit is None:
            self.runs += 1
        elif not limit.backing_off and limit.probe is None and ACCOUNT not in self.kept:
            self.limits.try_with(ACCOUNT, RunId(f"{self.token}-{self.runs}"))
            self.runs += 1


class Table:
    """What is on record, at a time of the server."""

    def __init__(self) -> None:
        self.row: CommonLimit | None = None
        self.until = self.claimed_until = 0.0

    def put(self, token: int, step: Step, now: float) -> None:
        """Do as the statements of the store do."""
        row = self.row
        match step:
            case PutMet(_, seconds, first_hand):
                if row is None or (first_hand and (row.over or self.until <= now)):
                    generation = 1 if row is None else row.generation + 1
                    self.row = CommonLimit(
                        account=ACCOUNT, generation=generation, message="m", left=0, met_by=token
                    )
                    self.until = now + seconds
            case PutOver(_, generation):
                if row is not None and row.generation == generation and not row.over:
                    self.row = replace(
                        row, generation=generation + 1, over=True, claimed_by=None, claim_left=0.0
                    )
            case ClaimTrial(_, generation):
                is_free = self.claimed_until <= now or (row and row.claimed_by in (None, token))
                if row is not None and row.generation == generation and not row.over and is_free:
                    self.row = replace(row, claimed_by=token)
                    self.claimed_until = now + CLAIM_SECONDS

    def known(self, now: float) -> dict[str, CommonLimit]:
        """Return what a leader reads."""
        if self.row is None:
            return {}
        left = self.claimed_until - now if self.row.claimed_by is not None else 0.0
        return {ACCOUNT: replace(self.row, left=self.until - now, claim_left=left)}


class Team:
    """Three workflows of three daemons with one account."""

    def __init__(self) -> None:
        self.table, self.now = Table(), 0.0
        self.all = [Workflow(token) for token in (1, 2, 3)]

    def look(self, one: Workflow) -> None:
        """Exchange what one knows with what is on record."""
        one.limits.pass_time(self.now)
        known = self.table.known(self.now)
        mine = {ACCOUNT: one.limit}
        for step in one.follower.steps(mine, known, self.now, wants=one.wants):
            self.table.put(one.token, step, self.now)
        one.follower.done(mine)
        known = self.table.known(self.now)
        for event in one.follower.hear({ACCOUNT: one.limit}, known):
            one.tell(event, self.now)
        one.kept = one.follower.kept(known)

    def pass_time(self, seconds: int) -> None:
        """Look once a second, and start what may be started."""
        for _ in range(seconds):
            self.now += 1.0
            for one in self.all:
                self.look(one)
            for one in self.all:
                if one.wants:
                    one.start()

    def meet(self, one: Workflow, seconds: float) -> None:
        """Have a run of a workflow meet the limit."""
        one.limits.met(ACCOUNT, "m", self.now, seconds=seconds)

    def probes(self) -> list[Workflow]:
        """Return the workflows with a run that tries the limit."""
        return [one for one in self.all if one.limit is not None and one.limit.probe is not None]


def test_one_workflow_tries_and_the_others_follow() -> None:
    """All are held by what one has met; a single run tries whether it is over, and then each
    workflow goes on by itself."""
    team = Team()
    team.meet(team.all[0], 60.0)
    team.pass_time(30)
    assert [one.runs for one in team.all] == [0, 0, 0]

    team.pass_time(40)
    (tries,) = team.probes()
    assert sum(one.runs for one in team.all) == 1
    team.pass_time(300)
    assert sum(one.runs for one in team.all) == 1

    tries.limits.lift(ACCOUNT)
    team.pass_time(4)
    assert len(team.probes()) == 2
    assert all(one.runs for one in team.all)


def test_a_limit_that_is_met_again_holds_all_again() -> None:
    """The run that tried has met it: nothing else was started meanwhile."""
    team = Team()
    team.meet(team.all[0], 10.0)
    team.pass_time(20)
    (tries,) = team.probes()
    team.meet(tries, 50.0)
    team.pass_time(40)

    assert team.probes() == []
    assert sum(one.runs for one in team.all) == 1
    assert all(one.limit is not None and one.limit.backing_off for one in team.all)


def test_a_claim_that_is_not_used_is_left_to_others() -> None:
    """A leader that dies with the claim, or has nothing to run any more, holds nothing up."""
    for dies in (True, False):
        team = Team()
        team.meet(team.all[0], 5.0)
        while not (team.table.row and team.table.row.claimed_by):
            team.now += 1.0
            for one in team.all:
                team.look(one)
        (claims,) = (o for o in team.all if o.token == team.table.row.claimed_by)
        claims.wants = False
        if dies:
            team.all.remove(claims)
        team.pass_time(int(CLAIM_SECONDS) + 5)

        (tries,) = team.probes()
        assert tries is not claims


def test_the_next_leader_hears_of_what_was_met() -> None:
    """One that begins with no limit is held; one that recalls a limit which is over is not."""
    team = Team()
    team.meet(team.all[0], 60.0)
    team.pass_time(3)
    team.all[1] = Workflow(4)
    team.pass_time(3)
    assert team.all[1].limit is not None
    assert team.all[1].runs == 0

    team.pass_time(70)
    (tries,) = team.probes()
    tries.limits.lift(ACCOUNT)
    team.pass_time(2)
    recalls = Workflow(5)
    recalls.limits.met(ACCOUNT, "m", team.now, seconds=900.0, met_here=False)
    team.all = [recalls]
    team.pass_time(3)
    assert recalls.runs == 1


def test_what_is_recalled_is_on_record_where_nothing_is() -> None:
    """A limit that no daemon has put on record yet holds the others, too."""
    team = Team()
    team.all[0].limits.met(ACCOUNT, "m", 0.0, seconds=60.0, met_here=False)
    team.pass_time(3)

    assert [one.runs for one in team.all[1:]] == [0, 0]
    assert all(one.limit is not None for one in team.all)
