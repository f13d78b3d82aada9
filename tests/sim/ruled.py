"""Days of three schedulers with rules and stages that share the slots of a process.

Beside what tests/sim/shared.py looks at: which rule an issue runs by is found out anew by a glance
at the issue, and stays so until the issue is let go of, over retries, reloads and crashes; no run
is begun beyond what its rule, or what is guaranteed to others, leaves; where the process has slots
for all, a guaranteed one is had within one poll; a stage is told what the one before has left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from uuid import UUID

from msgspec.structs import replace

from sortie.config.rules import Conditions, PriorityCondition
from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    Issue,
    IssueId,
    RunEnd,
    RunReport,
)
from sortie.model.stages import PassedStage
from sortie.orchestrator.recall import recall
from sortie.scheduler import Decision, Event, Memory, Policy, Record, RunIds, Scheduler
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.policy import RulePolicy
from tests.sim.disk import Disk
from tests.sim.recording import RecordedLife
from tests.sim.shared import LONGEST_RUN, LOOK_EVERY, NAMES, POLL, SLACK, SharedDay, Team
from tests.store.inline import memory_database

LABELS = ("docs", "web", "core")
STAGES = {"plan": "build", "build": "review"}
TODO = ("todo", *STAGES)


class RuledDay(SharedDay):
    """One seed's worth of a process with three workflows that have rules."""

    def __init__(self, seed: int) -> None:
        self.disks = {name: Disk(memory_database()) for name in NAMES}
        self.rules: dict[IssueId, str] = {}
        self.passed: dict[IssueId, PassedStage] = {}
        self.drafts: dict[IssueId, str] = {}
        self.short: dict[tuple[str, str], float] = {}
        self.changed_at = 0.0
        super().__init__(seed)
        self.has_plenty = seed % 2 == 0
        if self.has_plenty:
            self.total = sum(team.policy.max_concurrent_agents for team in self.teams.values())

    def _policy(self, hosts: tuple[str, ...]) -> Policy:
        plain = replace(super()._policy(hosts), max_concurrent_agents=self.dice.randint(2, 6))
        return self._ruled(plain)

    def _ruled(self, plain: Policy) -> Policy:
        """Return the policy with other rules; those for stages are always there."""
        dice, most = self.dice, plain.max_concurrent_agents - 1
        rules: list[RulePolicy] = []
        for name in dice.sample(LABELS, dice.randint(1, 3)):
            limit = dice.choice([None, 1, 2])
            guaranteed = min(most, limit or 1, dice.choice([0, 0, 1]))
            most -= guaranteed
            agent = dice.choice(["kiro", "other"])
            policy = replace(plain, rules=(), rule=name, agent=agent, account=agent)
            rules.append(
                RulePolicy(
                    name=name,
                    when=Conditions(labels=(name,)),
                    policy=policy,
                    max_concurrent_agents=limit,
                    guaranteed=guaranteed,
                    burst_to=None if limit is None else limit + dice.choice([0, 1]),
                )
            )
        first = Conditions(priority=PriorityCondition(lte=1))
        rules.insert(
            dice.randint(0, len(rules)),
            RulePolicy(name="urgent", when=first, policy=replace(plain, rules=(), rule="urgent")),
        )
        for state, following in STAGES.items():
            own = replace(
                plain,
                rules=(),
                rule=state,
                active_states=frozenset({state}),
                handoff_state=following,
            )
            rules.append(RulePolicy(name=state, when=Conditions(), policy=own))
        return replace(plain, rules=tuple(rules))

    def _boot(self, team: Team) -> None:
        team.life, team.booted_at = team.life + 1, self.now
        team.waits_since = team.short_since = None
        self._replay(team)
        team.recorded = RecordedLife(team.life)
        team.grants.clear()
        self._settled_at = self.changed_at = self.now
        memory = self._recalled(team)
        team.scheduler = Scheduler(
            team.policy,
            now=self.now,
            new_run_id=RunIds(UUID(int=team.life * 16 + NAMES.index(team.name))),
            memory=memory,
            grant=SlotGrant(),
        )
        self._let_go(team)

    def _recalled(self, team: Team) -> Memory:
        disk = self.disks[team.name]
        memory, records = recall(disk.recover(), team.policy, now=self.now, wall=self.now)
        for record in records:
            disk.write(record, self.now)
        return memory

    def _tell(self, team: Team, event: Event) -> None:
        assert team.scheduler is not None
        decisions = team.recorded.decide(team.scheduler, event, self.now)
        for decision in decisions:
            if isinstance(decision, Record):
                self.disks[team.name].write(decision, self.now)
        for decision in decisions:
            self._perform(team, decision)
        self._let_go(team)
        self._check_guaranteed(team)

    def _let_go(self, team: Team) -> None:
        """Forget by which rule issues ran that are not claimed any more."""
        assert team.scheduler is not None
        claims = team.scheduler.snapshot(self.now).claims
        for issue_id in [i for i in self.rules if i in team.issues and i not in claims]:
            del self.rules[issue_id]

    def _perform(self, team: Team, decision: Decision) -> None:
        match decision:
            case do.Poll():
                self._answer(team, self.dice.uniform(0.05, 2.0), lambda: self._listed(team))
            case do.HandOff(token, issue, state):
                team.issues[issue.id] = replace(team.issues[issue.id], state=state)
                moved: Callable[[], Event] = lambda: self._moved(team, issue.id, token, state)  # noqa: E731
                self._answer(team, self.dice.uniform(0.05, 1.0), moved)
            case _:
                super()._perform(team, decision)

    def _listed(self, team: Team) -> Event:
        return ev.CandidatesFetched(tuple(i for i in team.issues.values() if i.state in TODO))

    def _moved(self, team: Team, issue_id: IssueId, token: int, state: str) -> Event:
        """Answer a handoff, which ends the stage."""
        rule = self._rule_now(team, issue_id)
        if rule:
            known = self.passed.get(issue_id, PassedStage())
            hops = known.hops
            self.passed[issue_id] = PassedStage(
                rule=rule, state=state, result=self.drafts.get(issue_id, ""), hops=hops
            )
        return ev.TransitionAnswered(issue_id, token, state=state)

    def _rule_now(self, team: Team, issue_id: IssueId) -> str:
        """Return the rule of a claim: the one that was chosen, or, where a reload has taken it
        away, the first that fits."""
        assert team.scheduler is not None
        chosen = self.rules[issue_id]
        if chosen in {rule.name for rule in team.policy.rules} | {""}:
            return chosen
        return first_of(team.policy, team.scheduler.snapshot(self.now).claims[issue_id].issue)

    def _start(self, team: Team, start: do.StartWorker) -> None:
        issue, dice = team.issues[start.issue.id], self.dice
        self._check_rule(team, start, issue)
        team.running[start.run_id] = start
        self._check_limits(start.host)
        self._check_shares(team, start)
        self._check_wait(team)
        team.waits_since, team.started = None, team.started + 1
        self.reached[f"rule {start.rule}"] += 1
        result = f"what {start.run_id} left"
        end: RunEnd = Finished(finish=Finish.REVIEW)
        if dice.random() < 0.2:
            end, result = Failed(kind=ErrorKind.TURN_FAILED, message="it broke"), ""

        def exited() -> Event:
            del team.running[start.run_id]
            if self._rule_now(team, issue.id):
                self.drafts[issue.id] = result
            return ev.WorkerExited(start.run_id, RunReport(end=end, turns=0, stage_result=result))

        self._answer(team, dice.uniform(5.0, LONGEST_RUN), exited)

    def _check_rule(self, team: Team, start: do.StartWorker, issue: Issue) -> None:
        """See that the rule is the one that was chosen, or else the first that fits now."""
        names = {rule.name for rule in team.policy.rules} | {""}
        chosen = self.rules.get(issue.id)
        begins = chosen is None
        if chosen is None or chosen not in names:
            chosen = first_of(team.policy, start.issue)
        assert start.rule == chosen, f"{issue.id} runs by {start.rule!r}, not by {chosen!r}"
        self.rules[issue.id] = chosen
        known = self.passed.get(issue.id)
        if known is not None and begins:
            hops = known.hops + 1 if known.state == start.issue.state else 0
            known = self.passed[issue.id] = replace(known, hops=hops)
            self.drafts.pop(issue.id, None)
            self.reached["a stage follows"] += 1
        told = None if start.previous is None else replace(start.previous, draft="")
        assert told == known, f"{issue.id} is told of {told}, not of {known}"

    def _check_shares(self, team: Team, start: do.StartWorker) -> None:
        """See that a run that begins takes no more than its rule, and others, leave."""
        runs = Counter(run.rule for run in team.running.values())
        policy = team.policy
        reserved = 0
        for rule in policy.rules:
            if rule.name == start.rule:
                most = rule.burst_to or rule.max_concurrent_agents or policy.max_concurrent_agents
                assert runs[rule.name] <= most, f"{runs[rule.name]} runs of {rule.name}"
                if runs[rule.name] <= rule.guaranteed:
                    return
            else:
                reserved += max(0, rule.guaranteed - runs[rule.name])
        total = sum(runs.values())
        assert total + reserved <= policy.max_concurrent_agents, "a guaranteed slot was given away"

    def _check_guaranteed(self, team: Team) -> None:
        """See that rules have their slots within a poll, where the process has enough for all."""
        policy, runs = team.policy, Counter(run.rule for run in team.running.values())
        settled = self.now - self.changed_at > LONGEST_RUN + SLACK
        wanting = Counter(self._waiting(team)) if settled and self.has_plenty else Counter[str]()
        free = policy.max_per_host is None and self.host_limit is None
        for rule in policy.rules:
            key = (team.name, rule.name)
            if not free or not wanting[rule.name] or runs[rule.name] >= rule.guaranteed:
                self.short.pop(key, None)
                continue
            late = self.now - self.short.setdefault(key, self.now)
            assert late <= POLL + LOOK_EVERY + SLACK, f"{key} waits {late:.0f} s for its slot"
            self.reached["a guaranteed slot of a rule"] += 1

    def _waiting(self, team: Team) -> Iterator[str]:
        """Yield the rules of the issues that could start and are in nobody's hand."""
        assert team.scheduler is not None
        claims = team.scheduler.snapshot(self.now).claims
        for issue in team.issues.values():
            if issue.state in TODO and issue.id not in claims:
                yield first_of(team.policy, issue)

    # What happens

    def _demand(self) -> None:
        super()._demand()
        for team in self.teams.values():
            for issue in list(team.issues.values()):
                if issue.state == "todo" and not issue.labels and issue.priority is None:
                    team.issues[issue.id] = self._drawn(issue)
        self._meddle()

    def _drawn(self, issue: Issue) -> Issue:
        dice = self.dice
        labels = tuple(dice.sample(("none", *LABELS), dice.randint(1, 2)))
        state = dice.choice(["todo", "todo", "plan"])
        return replace(issue, labels=labels, priority=dice.choice([None, 1, 3]), state=state)

    def _meddle(self) -> None:
        """Let people change labels, also of issues that wait or run, and send work back."""
        for team in self.teams.values():
            for issue in list(team.issues.values()):
                if self.dice.random() < 0.1 and issue.state in TODO:
                    labels = (self.dice.choice(LABELS),)
                    team.issues[issue.id] = replace(issue, labels=labels)
                elif self.dice.random() < 0.1 and issue.state == "review":
                    state = self.dice.choice(["todo", "plan"])
                    team.issues[issue.id] = replace(issue, state=state)

    def _reload(self) -> None:
        super()._reload()
        for team in self.teams.values():
            team.policy = self._ruled(replace(team.policy, rules=()))
            if team.scheduler is not None:
                self._tell(team, ev.PolicyChanged(team.policy))
        self.changed_at = self.now


def first_of(policy: Policy, issue: Issue) -> str:
    """Return the rule that decides, by a second pair of eyes."""
    for rule in policy.rules:
        if rule.name in STAGES:
            if issue.state == rule.name:
                return rule.name
        elif issue.state == "todo":
            fits = rule.name in issue.labels
            if rule.name == "urgent":
                fits = issue.priority is not None and issue.priority <= 1
            if fits:
                return rule.name
    return ""


def live_through(seed: int, hours: float) -> RuledDay:
    """Live one day; return it for what it reached."""
    day = RuledDay(seed)
    day.live(hours)
    return day
