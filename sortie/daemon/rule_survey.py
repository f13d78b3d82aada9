"""Which rule decides for an issue now, and how many issues each rule has, found without changing
anything."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from sortie.config.settings import Settings
from sortie.daemon.dry_run import find_issue, load_quietly, recorded_memory, survey
from sortie.daemon.options import RunOptions
from sortie.daemon.tracker import states_of
from sortie.model import Issue
from sortie.scheduler import policy_of
from sortie.scheduler.claims import Held, Running
from sortie.scheduler.rule_choice import decides, passed_over, stands


class RuleUse(Struct, frozen=True, kw_only=True):
    """How many issues a rule, "" for the top level, decides for now, by how they stand."""

    rule: str
    candidates: int
    running: int
    waiting: int
    held: int


def rule_uses(options: RunOptions) -> list[RuleUse]:
    """Poll once, and count the issues of each rule, the top level last. Raises SortieError."""
    workflow = load_quietly(options)
    policy, found = policy_of(workflow.settings), survey(options, workflow)
    counts: Counter[tuple[str, str]] = Counter()
    claimed = {claim.issue.id for claim in found.memory.claims}
    for claim in found.memory.claims:
        kind = "running" if isinstance(claim, Running) else "waiting"
        kind = "held" if isinstance(claim, Held) else kind
        counts[decides(policy, claim.issue, found.memory.rules.get(claim.issue.id)), kind] += 1
    for issue in found.issues:
        rule = decides(policy, issue, found.memory.rules.get(issue.id))
        if issue.id not in claimed and policy.of_rule(rule).is_active(issue):
            counts[rule, "candidates"] += 1
    return [
        RuleUse(
            rule=name,
            candidates=counts[name, "candidates"],
            running=counts[name, "running"],
            waiting=counts[name, "waiting"],
            held=counts[name, "held"],
        )
        for name in (*(rule.name for rule in policy.rules), "")
    ]


class RuleVerdict(Struct, frozen=True, kw_only=True):
    """The rule that decides for an issue, "" for the top level, and why those before it do not;
    ``settings`` are those of the top level.

    ``rule`` is None where no rule decides, as the issue is neither active nor in hand. ``would``
    are the rules that would decide then, each with the active states in which it would.
    """

    issue: Issue
    active: bool
    rule: str | None
    passed_over: tuple[str, ...]
    settings: Settings
    would: tuple[tuple[str, tuple[str, ...]], ...] = ()


def rule_verdict(options: RunOptions, identifier: str) -> RuleVerdict:
    """Ask the tracker for one issue, in whatever state, and return which rule decides for it.
    Raises SortieError."""
    workflow = load_quietly(options)
    settings, policy = workflow.settings, policy_of(workflow.settings)
    issue = find_issue(options, workflow, identifier)
    chosen = recorded_memory(settings, policy, has_program=True).rules.get(issue.id)
    rule = decides(policy, issue, chosen)
    active = policy.of_rule(rule).is_active(issue)
    is_chosen = chosen is not None and stands(policy, chosen)
    if active or is_chosen:
        return RuleVerdict(
            issue=issue,
            active=active,
            rule=rule,
            passed_over=passed_over(policy, issue, rule),
            settings=settings,
        )
    would: dict[str, list[str]] = {}
    for state in states_of(settings).active:
        moved = replace(issue, state=state)
        name = decides(policy, moved, None)
        if policy.of_rule(name).is_active(moved):
            would.setdefault(name, []).append(state)
    return RuleVerdict(
        issue=issue,
        active=False,
        rule=None,
        passed_over=(),
        settings=settings,
        would=tuple((name, tuple(states)) for name, states in would.items()),
    )
