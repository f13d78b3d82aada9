"""The state of the scheduler, and the ways in which it changes.

Rule 1: counts (slots, load, running sessions) are derived from the claims by the claim table.
Rule 2: what must survive a restart changes together with the record that says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sortie import facts
from sortie.model import (
    NOTHING,
    AgentSession,
    Delivery,
    HoldReason,
    Issue,
    IssueId,
    StopReason,
)
from sortie.model.asked_questions import AskedQuestion
from sortie.model.stages import PassedStage
from sortie.model.watches import Watch
from sortie.scheduler import records as rec
from sortie.scheduler.budgets import OF_DAY, OF_ISSUE, BudgetStanding, Ledger, Used
from sortie.scheduler.candidates import Candidate, CandidateQueue
from sortie.scheduler.claim_table import ClaimTable
from sortie.scheduler.claims import (
    Departure,
    Running,
    Starting,
    Stopping,
    Worked,
)
from sortie.scheduler.decisions import Decision, StopWorker
from sortie.scheduler.grants import SlotGrant
from sortie.scheduler.hosts import Hosts
from sortie.scheduler.identifiers import RunIds
from sortie.scheduler.policy import Policy
from sortie.scheduler.rule_choice import decides, stands
from sortie.scheduler.timing import order_key
from sortie.scheduler.usage_limits import UsageLimit, UsageLimits, agent_of
from sortie.scheduler.watch_table import Watched, WatchTable
from sortie.scheduler.webhook_table import WebhookTable
from sortie.scheduler.workspace_index import WorkspaceIndex
from sortie.scheduler.workspace_space import WorkspaceSpace

NOT_LOOKED = "no preflight has been made yet"


@dataclass(slots=True, kw_only=True)
class SchedulerState:
    """The scheduler's state.

    ``dispatch_needed``: a dispatch may find an issue to start. ``epoch`` is the Unix time at which
    the monotonic clock stood at 0. ``in_hand`` is the issue that is being handled, in case that
    crashes. ``sessions`` counts an issue's runs in which a turn started; ``agent_sessions`` are
    those that its next run may resume, and ``deliveries`` what it goes on with. ``questions`` are
    the newest of the issues' agents. ``crashed`` are issues with a recorded crash.
    ``last_request`` numbers the requests to the outside world. No
    issue is chosen before ``no_dispatch_before``, as the tracker did not answer about those chosen
    last; and no request is planned before ``tracker_paused_until``. ``rules`` are those that were
    chosen for issues that are claimed or watched, "" for the top level; they are on record.
    ``hindrances`` say by rule why its agent cannot be launched.
    """

    policy: Policy
    new_run_id: RunIds
    epoch: float
    poll_at: float
    reconcile_at: float
    check_workspaces_at: float
    candidates: CandidateQueue = field(default_factory=CandidateQueue)
    claims: ClaimTable = field(init=False)
    sessions: dict[IssueId, int] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=lambda: Ledger({}, NOTHING))
    day: str = ""
    limits: UsageLimits = field(default_factory=UsageLimits)
    agent_sessions: dict[IssueId, AgentSession] = field(default_factory=dict)
    deliveries: dict[IssueId, Delivery] = field(default_factory=dict)
    questions: dict[IssueId, AskedQuestion] = field(default_factory=dict)
    rules: dict[IssueId, str] = field(default_factory=dict)
    stages: dict[IssueId, PassedStage] = field(default_factory=dict)
    matched: dict[IssueId, tuple[Issue, str]] = field(default_factory=dict)
    watches: WatchTable = field(default_factory=WatchTable)
    former_watches: dict[IssueId, Watch] = field(default_factory=dict)
    webhooks: WebhookTable = field(default_factory=WebhookTable)
    space: WorkspaceSpace = field(default_factory=WorkspaceSpace)
    space_low: frozenset[str] = frozenset()
    workspaces: WorkspaceIndex = field(default_factory=WorkspaceIndex)
    crashed: set[IssueId] = field(default_factory=set)
    in_hand: Issue | None = None
    hosts: Hosts = field(default_factory=Hosts)
    grant: SlotGrant | None = None
    paused: bool = False
    draining: bool = False
    suspended: str | None = None
    store_error: str | None = None
    polling_since: float | None = None
    refresh_asked: bool = False
    poll_error: str | None = None
    skipped: str | None = NOT_LOOKED
    hindrances: Mapping[str, str] = field(default_factory=dict)
    shortage: str | None = None
    reconciling: int | None = None
    last_request: int = 0
    no_dispatch_before: float = 0.0
    tracker_paused_until: float = 0.0
    idle_polls: int = 0
    dispatch_needed: bool = False
    out: list[Decision] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.claims = ClaimTable(self.candidates, self.epoch)

    @property
    def polling(self) -> bool:
        """Whether a poll is under way."""
        return self.polling_since is not None

    def next_request(self) -> int:
        """Return the number of a new request to the outside world."""
        self.last_request += 1
        return self.last_request

    def pause_tracker(self, until: float) -> None:
        """Plan no request to the tracker before this time."""
        self.tracker_paused_until = max(self.tracker_paused_until, until)
        self.no_dispatch_before = max(self.no_dispatch_before, self.tracker_paused_until)
        self.poll_at = max(self.poll_at, self.tracker_paused_until)
        self.reconcile_at = max(self.reconcile_at, self.tracker_paused_until)

    def tracker_answered(self, now: float) -> None:
        """Allow dispatch again, unless the tracker asked for a pause."""
        self.no_dispatch_before = max(now, self.tracker_paused_until)

    def worked(self) -> Iterator[Worked]:
        """Iterate over the claims that a worker stands behind."""
        return self.claims.worked()

    def find(self, name: str) -> Issue | None:
        """Return the issue in hand or candidate with this id, else with this identifier."""
        known = {c.issue.id: c.issue for c in self.watches.values()}
        known |= {c.issue.id: c.issue for c in self.candidates.values()}
        known |= {c.issue.id: c.issue for c in self.claims.values()}
        by_id = known.get(IssueId(name))
        return by_id or next((i for i in known.values() if i.identifier == name), None)

    def watched(self, issue_id: IssueId) -> Watched | None:
        """Return the watched pull request of an issue; None while all reactions are off."""
        return self.watches.get(issue_id) if self.policy.reactions.on else None

    def is_active(self, issue: Issue) -> bool:
        """Tell whether an issue may be worked on: in an active state, or in the handoff state where
        a further run is to answer what has happened to its pull request."""
        policy = self.policy_for(issue)
        if policy.is_active(issue):
            return True
        watched = self.watches.get(issue.id)
        if watched is None or watched.watch.reaction is None:
            return False
        return policy.is_handed_off(issue)

    def obey(self, policy: Policy) -> None:
        """Go by another policy; the rules that were chosen stay so, and so does the top level for
        what was claimed or watched when there were no rules."""
        if policy.rules and not self.policy.rules:
            for issue_id in (*self.claims, *self.watches):
                self.rules.setdefault(issue_id, "")
                self.out.append(rec.RecordRule(issue_id=issue_id, rule=self.rules[issue_id]))
        self.policy = policy
        self.matched.clear()

    def rule_of(self, issue: Issue) -> str:
        """Return the name of the rule that decides for an issue, "" for the top level: the one
        that was chosen when it was claimed, as long as there is one of this name, else the first
        that matches."""
        if not self.policy.rules:
            return ""
        chosen = self.rules.get(issue.id)
        if chosen is not None and stands(self.policy, chosen):
            return chosen
        matched = self.matched.get(issue.id)
        if matched is None or matched[0] is not issue:
            matched = self.matched[issue.id] = (issue, decides(self.policy, issue, None))
        return matched[1]

    def policy_for(self, issue: Issue) -> Policy:
        """Return what is obeyed for an issue: the policy of its rule."""
        return self.policy.of_rule(self.rule_of(issue))

    @property
    def usage_limit(self) -> UsageLimit | None:
        """The first usage limit of the accounts that the settings name, None where none is."""
        limits = (self.limits.of(policy.account) for policy in self.policy.every())
        return next((limit for limit in limits if limit is not None), None)

    def keep_rule(self, issue: Issue) -> None:
        """Let the rule that decides for an issue do so until it is neither claimed nor watched."""
        rule = self.rule_of(issue)
        if self.policy.rules and self.rules.get(issue.id) != rule:
            self.rules[issue.id] = rule
            self.out.append(rec.RecordRule(issue_id=issue.id, rule=rule))

    def forget_rules(self) -> None:
        """Let a rule be chosen anew for the issues that are neither claimed nor watched."""
        gone = [i for i in self.rules if i not in self.claims and i not in self.watches]
        for issue_id in gone:
            del self.rules[issue_id]
            self.out.append(rec.ForgetRule(issue_id=issue_id))

    def queue_up(self, issue: Issue) -> None:
        """Make an issue a candidate, or replace the candidate."""
        self.candidates.put(Candidate((order_key(issue), issue.id), issue))

    def release(self, issue_id: IssueId) -> None:
        """End a claim."""
        del self.claims[issue_id]
        self.dispatch_needed = True

    def forget_crashes(self, issue_id: IssueId) -> None:
        """Count no crash against an issue any more."""
        if issue_id in self.crashed:
            self.crashed.remove(issue_id)
            self.out.append(rec.ForgetCrashes(issue_id=issue_id))

    def reset_budget(self, issue_id: IssueId) -> None:
        """Reset an issue's budget."""
        had_sessions = self.sessions.pop(issue_id, None) is not None
        if self.ledger.forget(issue_id) or had_sessions:
            self.out.append(rec.ResetBudget(issue_id=issue_id))

    def over_budget(self, issue: Issue) -> HoldReason | None:
        """Return why an issue may have no further run: its sessions, or what it used."""
        if self.used_up(issue) is not None:
            return HoldReason.USAGE_BUDGET_EXHAUSTED
        spent = 0 < self.policy_for(issue).max_sessions <= self.sessions.get(issue.id, 0)
        return HoldReason.SESSION_BUDGET_EXHAUSTED if spent else None

    def uncount_session(self, issue_id: IssueId, turns: int) -> None:
        """Do not count a session against an issue's budget, if a turn had started in it."""
        if turns:
            self.sessions[issue_id] -= 1
            count = self.sessions[issue_id]
            self.out.append(rec.RecordSessions(issue_id=issue_id, sessions=count))

    def lift_limit(self, account: str, reason: str) -> None:
        """End the usage limit of an account, if it has one."""
        if self.limits.lift(account):
            self.out.append(rec.ForgetLimit(account=account))
            self.out.append(facts.AgentLimitEnded(agent=agent_of(account), reason=reason))
            self.dispatch_needed = True

    def day_spent(self) -> str | None:
        """Say that the budget of this day is used up, None where it is not."""
        used = self.policy.per_day.reached(self.ledger.today, OF_DAY)
        if used is None:
            return None
        amount = f"{used.used_text} of {used.limit_text}"
        return f"{used.key} is used up: {amount}; runs start again at midnight ({self.policy.zone})"

    def budget_of(self, issue: Issue) -> BudgetStanding:
        """Return what an issue and the day have used and may use."""
        return BudgetStanding(
            of_issue=self.ledger.of_issue(issue.id),
            issue_limits=self.policy_for(issue).per_issue.limits(OF_ISSUE),
            of_day=self.ledger.today,
            day_limits=self.policy.per_day.limits(OF_DAY),
            sessions=self.sessions.get(issue.id, 0),
        )

    def used_up(self, issue: Issue) -> Used | None:
        """Return the limit that an issue has reached by what it used, None where there is none."""
        allowed = self.policy_for(issue).per_issue
        return allowed.reached(self.ledger.of_issue(issue.id), OF_ISSUE)

    def stop(self, claim: Starting | Running, reason: StopReason) -> None:
        """Stop a run."""
        self.claims[claim.issue.id] = Stopping(
            issue=claim.issue,
            run_id=claim.run_id,
            streak=claim.streak,
            host=claim.host,
            since=claim.since,
            rule=claim.rule,
            began_in=claim.began_in,
            turns=claim.turns,
            last_request=claim.last_request,
            reason=reason,
        )
        self.out.append(StopWorker(claim.run_id, claim.issue, reason))

    def stop_departed(self, claim: Starting | Running, departure: Departure) -> None:
        """Stop a run, as its issue is no longer active."""
        why = departure.sentence
        self.out.append(facts.IssueReconciled(action="stop", issue=claim.issue, reason=why))
        self.stop(claim, departure.reason)
