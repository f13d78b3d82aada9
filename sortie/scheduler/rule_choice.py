"""Which rule decides for an issue: the first that matches, by a glance at the issue alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from sortie.model import Issue, state_key
from sortie.scheduler.policy import Policy, RulePolicy

_WORD = re.compile(r"\w+")


def decides(policy: Policy, issue: Issue, chosen: str | None) -> str:
    """Return the name of the rule that decides for an issue, "" for the top level; ``chosen`` is
    the one that was chosen earlier, if one was."""
    if chosen is not None and stands(policy, chosen):
        return chosen
    matched = first_match(policy, issue)
    return "" if matched is None else matched.name


def stands(policy: Policy, chosen: str) -> bool:
    """Tell whether a choice holds that was made earlier: there still is a rule of this name."""
    return bool(policy.rules) and (not chosen or policy.has_rule(chosen))


def first_match(policy: Policy, issue: Issue) -> RulePolicy | None:
    """Return the rule that decides for an issue, None where the top level does."""
    return next((rule for rule in policy.rules if mismatch(rule, issue) is None), None)


def mismatch(rule: RulePolicy, issue: Issue) -> str | None:
    """Say why a rule is not for an issue, None where it is."""
    return next(_mismatches(rule, issue), None)


def passed_over(policy: Policy, issue: Issue, name: str) -> tuple[str, ...]:
    """Say why each rule before the one that decides, "" for the top level, is not for an issue."""
    said = []
    for rule in policy.rules:
        if rule.name == name:
            break
        named = name or "the top level"
        kept = f"{named} was chosen when the issue was claimed, and stays until it is let go of"
        said.append(f"{rule.name}: {mismatch(rule, issue) or kept}")
    return tuple(said)


def _mismatches(rule: RulePolicy, issue: Issue) -> Iterator[str]:
    when = rule.when
    if not rule.policy.is_active(issue):
        yield f"the rule does not work on issues in the state {issue.state}"
    if when.states and not _is_one(issue.state, when.states):
        yield f"its state is {issue.state}, not {_any(when.states)}"
    if when.labels and not any(_fits(label, when.labels) for label in issue.labels):
        yield f"it has no label {_any(when.labels)}"
    if when.identifier and not _fits(issue.identifier, when.identifier):
        yield f"its identifier is {issue.identifier}, not {_any(when.identifier)}"
    for what, value, wanted in (
        ("type", issue.issue_type, when.issue_type),
        ("assignee", issue.assignee, when.assignee),
        ("author", issue.author, when.author),
    ):
        if wanted and not _is_one(value, wanted):
            yield f"its {what} is {value or 'not known'}, not {_any(wanted)}"
    if when.priority is not None and not when.priority.includes(issue.priority):
        has = (
            "it has no priority" if issue.priority is None else f"its priority is {issue.priority}"
        )
        yield f"{has}, not {when.priority.words}"
    if when.title and not any(_phrase(words) in _phrase(issue.title) for words in when.title):
        yield f"its title has no word {_any(when.title)}"


def _is_one(value: str | None, wanted: Iterable[str]) -> bool:
    return value is not None and state_key(value) in map(state_key, wanted)


def _fits(value: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(state_key(value), state_key(glob)) for glob in globs)


def _phrase(text: str) -> str:
    """Return the words of a text between blanks, so that only whole words are found in it."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _any(wanted: tuple[str, ...]) -> str:
    return " or ".join(wanted)
