"""The part of the settings that the scheduler obeys; times are seconds."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from msgspec import Struct, field

from sortie.config.questions import QuestionsSettings
from sortie.config.reactions import ReactionsSettings
from sortie.config.rules import Conditions, StageSettings
from sortie.config.settings import AgentSettings, Rule, Settings
from sortie.model import LEASE, LOCAL, Issue, same_state, state_key
from sortie.scheduler.budgets import NO_LIMITS, Allowance
from sortie.scheduler.webhook_scope import WebhookScope, webhook_scope
from sortie.scheduler.workspace_space import SpaceLimits


class Policy(Struct, frozen=True, kw_only=True):
    """What to choose, how much at once and how long to wait.

    ``keep_unsaved`` is how long a finished issue's workspace stays for the work in it.
    ``account`` is whose usage limit counts: that of the agent's kind and command.
    ``lease`` is how many seconds what runs on a host may live without a sign from the daemon.
    States and labels in sets and mappings are in their compared form (``state_key``). ``rules`` are
    in order; the policy of a rule has its name in ``rule`` and obeys no rules itself.
    """

    active_states: frozenset[str] = frozenset()
    terminal_states: frozenset[str] = frozenset()
    required_labels: frozenset[str] = frozenset()
    in_progress_state: str | None = None
    handoff_state: str | None = None
    has_repository: bool = False
    space: SpaceLimits = SpaceLimits()
    comment_on_completion: bool = False
    comment_on_failure: bool = False
    poll_interval: float = 30.0
    max_sessions: int = 0
    max_hops: int = 10
    per_issue: Allowance = NO_LIMITS
    per_day: Allowance = NO_LIMITS
    zone: str = "UTC"
    max_concurrent_agents: int = 10
    max_by_state: Mapping[str, int] = field(default_factory=dict)
    max_retry_backoff: float = 300.0
    agent: str = "kiro"
    account: str = "kiro"
    hosts: tuple[str, ...] = (LOCAL,)
    max_per_host: int | None = None
    lease: float = LEASE
    stop_grace: float = 5.0
    inactive_grace: float = 30.0
    keep_unsaved: float = 14 * 86_400.0
    reactions: ReactionsSettings = ReactionsSettings()
    webhooks: WebhookScope = WebhookScope()
    questions: QuestionsSettings | None = None
    rule: str = ""
    rules: tuple[RulePolicy, ...] = ()

    def has_rule(self, name: str) -> bool:
        """Tell whether there is a rule of this name."""
        return any(rule.name == name for rule in self.rules)

    def goes_on_with_conversation(self, name: str) -> bool:
        """Tell whether a run of this rule goes on with the conversation of another's."""
        stages = (rule.stage for rule in self.rules if rule.name == name)
        return any(stage.conversation == "continue" for stage in stages)

    def of_rule(self, name: str) -> Policy:
        """Return the policy of a rule, this one where there is no rule of this name."""
        return next((rule.policy for rule in self.rules if rule.name == name), self)

    def every(self) -> tuple[Policy, ...]:
        """Return this policy and those of all rules."""
        return (self, *(rule.policy for rule in self.rules))

    @property
    def every_host(self) -> tuple[str, ...]:
        """The hosts on which any run may be."""
        return tuple(dict.fromkeys(host for policy in self.every() for host in policy.hosts))

    def accounts_on(self, host: str) -> frozenset[str]:
        """Return the accounts whose agents may run on a host."""
        return frozenset(policy.account for policy in self.every() if host in policy.hosts)

    def is_active(self, issue: Issue) -> bool:
        """Tell whether an issue is in a state in which it is worked on."""
        key = state_key(issue.state)
        return key in self.active_states and key not in self.terminal_states

    def is_handed_off(self, issue: Issue) -> bool:
        """Tell whether an issue stands in the handoff state."""
        return self.handoff_state is not None and same_state(issue.state, self.handoff_state)

    def is_terminal(self, issue: Issue) -> bool:
        """Tell whether an issue is finished."""
        return state_key(issue.state) in self.terminal_states


class RulePolicy(Struct, frozen=True, kw_only=True):
    """For which issues a rule is, what it lets the scheduler obey, and its share of the slots.

    ``max_concurrent_agents`` None is no limit but the common one; ``burst_to`` is how many of its
    runs may work while nobody else wants the slots.
    """

    name: str
    when: Conditions
    policy: Policy
    max_concurrent_agents: int | None = None
    guaranteed: int = 0
    burst_to: int | None = None
    stage: StageSettings = StageSettings()


def account_of(agent: AgentSettings) -> str:
    """Return the name of the account that an agent works for, as far as can be told: one kind
    with one command has one. The command itself may hold secrets."""
    if agent.command is None:
        return agent.kind
    digest = sha256(repr(agent.command).encode("utf-8", "surrogateescape")).hexdigest()
    return f"{agent.kind} {digest[:16]}"


def policy_of(settings: Settings) -> Policy:
    """Return what the scheduler obeys of these settings."""
    tracker, agent, worker = settings.tracker, settings.agent, settings.worker
    return Policy(
        active_states=frozenset(map(state_key, tracker.active_states)),
        terminal_states=frozenset(map(state_key, tracker.terminal_states)),
        required_labels=frozenset(map(state_key, tracker.required_labels)),
        in_progress_state=tracker.in_progress_state,
        handoff_state=tracker.handoff_state,
        has_repository=settings.repository.url is not None,
        space=SpaceLimits(
            total=settings.workspace.max_bytes, each=settings.workspace.max_bytes_each
        ),
        comment_on_completion=tracker.comments.on_completion,
        comment_on_failure=tracker.comments.on_failure,
        poll_interval=settings.polling.interval,
        max_sessions=agent.max_sessions,
        max_hops=agent.max_hops,
        per_issue=Allowance(
            tokens=agent.max_tokens, credits=agent.max_credits, cost_usd=agent.max_cost_usd
        ),
        per_day=Allowance(
            credits=settings.budget.daily_credits, cost_usd=settings.budget.daily_cost_usd
        ),
        zone=settings.budget.timezone,
        max_concurrent_agents=agent.max_concurrent_agents,
        max_by_state=agent.max_concurrent_agents_by_state,
        max_retry_backoff=agent.max_retry_backoff,
        agent=agent.kind,
        account=account_of(agent),
        hosts=tuple(worker.hosts) or (LOCAL,),
        max_per_host=worker.max_concurrent_agents_per_host,
        lease=max(LEASE, worker.outlived),
        stop_grace=agent.stop_grace,
        inactive_grace=agent.inactive_grace,
        keep_unsaved=settings.workspace.keep_unpushed_days * 86_400.0,
        reactions=settings.reactions,
        webhooks=webhook_scope(settings),
        questions=settings.questions,
        rule=settings.rule,
        rules=tuple(map(_rule_policy, settings.rules)),
    )


def _rule_policy(rule: Rule) -> RulePolicy:
    return RulePolicy(
        name=rule.name,
        when=rule.when,
        policy=policy_of(rule.settings),
        max_concurrent_agents=rule.max_concurrent_agents,
        guaranteed=rule.guaranteed,
        burst_to=rule.burst_to,
        stage=rule.stage,
    )
