"""What is wrong with rules together: none is hidden, can never match, or leads back to itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from sortie.config.rules import Conditions, PriorityCondition
from sortie.config.schemas import Schemas
from sortie.config.settings import Rule, Settings
from sortie.documents import Node
from sortie.model import Problem, state_key

Tell = Callable[[str, str], Problem]


def rules_findings(
    settings: Settings, placed: tuple[tuple[int, Rule], ...], node: Node, schemas: Schemas
) -> Iterator[Problem]:
    """Yield the problems of rules that could all be decoded, with their positions in the list."""
    has_labels = schemas.trackers[settings.tracker.kind].has_labels
    guaranteed, most = 0, settings.agent.max_concurrent_agents
    for position, (at, rule) in enumerate(placed):
        tell = _teller(node, at)
        guaranteed += rule.guaranteed
        for key, message in _about_shares(rule, guaranteed, most):
            yield tell(key, message)
        never = _never(rule, has_labels=has_labels)
        if never is not None:
            yield _warning(tell("when", f"the rule can never match: {never}"))
            continue
        for _, earlier in placed[:position]:
            if _hides(earlier, rule):
                message = (
                    f'the rule is never reached: "{earlier.name}" above matches all that it would'
                )
                yield _warning(tell("when", message))
                break
    yield from _cycles(placed, node)


def _teller(node: Node, at: int) -> Tell:
    item = node.items()[at]

    def tell(key: str, message: str) -> Problem:
        found = item.at(tuple(key.split("."))) or item.at((key.split(".")[0],)) or item
        return found.where.problem(f"rules[{at}].{key}", message)

    return tell


def _warning(problem: Problem) -> Problem:
    return Problem(
        path=problem.path,
        line=problem.line,
        column=problem.column,
        key=problem.key,
        message=problem.message,
        severity="warning",
    )


def _about_shares(rule: Rule, guaranteed: int, most: int) -> Iterator[tuple[str, str]]:
    own, burst = rule.max_concurrent_agents, rule.burst_to
    if own is not None and rule.guaranteed > own:
        yield "guaranteed", f"is more than the rule's max_concurrent_agents, {own}"
    if burst is not None and own is None:
        yield "burst_to", "means nothing without max_concurrent_agents of the rule"
    elif burst is not None and own is not None and burst < own:
        yield "burst_to", f"is less than the rule's max_concurrent_agents, {own}"
    if rule.guaranteed and guaranteed > most:
        yield (
            "guaranteed",
            f"with those above, {guaranteed} slots are guaranteed, and agent.max_concurrent_agents"
            f" allows {most}",
        )


def _active(rule: Rule) -> set[str]:
    """Return the states in which the rule's issues are worked on."""
    active = {state_key(state) for state in rule.settings.tracker.active_states}
    named = {state_key(state) for state in rule.when.states}
    return active & named if named else active


def _never(rule: Rule, *, has_labels: bool) -> str | None:
    """Say why a rule can match no issue, None where it may."""
    if not _active(rule):
        return "none of when.states is an active state"
    if rule.when.labels and not has_labels:
        return f"the {rule.settings.tracker.kind} tracker has no labels"
    priority = rule.when.priority
    if priority is not None and not any(map(priority.includes, (*priority.bounds(), None))):
        return f"no priority is {priority.words}"
    return None


def _hides(earlier: Rule, later: Rule) -> bool:
    """Tell whether an earlier rule matches every issue that a later one would."""
    first, second = earlier.when, later.when
    return (
        _active(later) <= _active(earlier)
        and _implied(first.labels, second.labels, globs=True)
        and _implied(first.identifier, second.identifier, globs=True)
        and all(
            _implied(getattr(first, key), getattr(second, key))
            for key in ("issue_type", "assignee", "author", "title")
        )
        and _includes(first.priority, second.priority)
    )


def _implied(wide: tuple[str, ...], narrow: tuple[str, ...], *, globs: bool = False) -> bool:
    """Tell whether whatever fits one of ``narrow`` fits one of ``wide``; nothing fits all."""
    if not wide:
        return True
    return bool(narrow) and all(
        any(_covers(state_key(one), state_key(other), globs=globs) for one in wide)
        for other in narrow
    )


def _covers(wide: str, narrow: str, *, globs: bool) -> bool:
    if wide == narrow:
        return True
    if not globs or not set(narrow).isdisjoint("?[") or not set(wide).isdisjoint("?["):
        return False
    return fnmatchcase(narrow, wide)


def _includes(wide: PriorityCondition | None, narrow: PriorityCondition | None) -> bool:
    if wide is None:
        return True
    if narrow is None:
        return wide == PriorityCondition()
    tried = (*wide.bounds(), *narrow.bounds())
    return all(wide.includes(number) for number in tried if narrow.includes(number))


def _cycles(placed: tuple[tuple[int, Rule], ...], node: Node) -> Iterator[Problem]:
    """Yield an error for each chain of stages that comes back to where it began.

    A rule's issues go to its handoff state, in which the first rule that is for them takes over.
    """
    following = {at: tuple(_followers(rule, placed)) for at, rule in placed}
    names = {at: rule.name for at, rule in placed}
    reported: set[frozenset[int]] = set()
    for at, _ in placed:
        chain = _back_to(at, following)
        if chain and frozenset(chain) not in reported:
            reported.add(frozenset(chain))
            way = " -> ".join(f'"{names[step]}"' for step in (*chain, at))
            tell = _teller(node, at)
            message = f"the stages lead back to this one and no person is between: {way}"
            yield tell("tracker.handoff_state", message)


def _followers(rule: Rule, placed: tuple[tuple[int, Rule], ...]) -> Iterator[int]:
    """Yield the rules that may be for an issue which this one has handed off."""
    state = rule.settings.tracker.handoff_state
    if state is None:
        return
    for at, other in placed:
        if state_key(state) in _active(other) and _may_share(rule.when, other.when):
            yield at
            if _matches_all_of(other.when):
                return


def _may_share(one: Conditions, other: Conditions) -> bool:
    """Tell whether one issue may fit both; only what cannot be is known for certain."""
    for key in ("issue_type", "assignee", "author"):
        mine, theirs = getattr(one, key), getattr(other, key)
        if mine and theirs and {*map(state_key, mine)}.isdisjoint(map(state_key, theirs)):
            return False
    return True


def _matches_all_of(when: Conditions) -> bool:
    return when.model_copy(update={"states": ()}) == Conditions()


def _back_to(start: int, following: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shortest way from a rule back to it, () where there is none."""
    ways: list[tuple[int, ...]] = [(start,)]
    seen: set[int] = set()
    while ways:
        way = ways.pop(0)
        for step in following[way[-1]]:
            if step == start:
                return way
            if step not in seen:
                seen.add(step)
                ways.append((*way, step))
    return ()
