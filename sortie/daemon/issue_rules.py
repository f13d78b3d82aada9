"""Which rule decides for an issue, by what is on record and the settings, without a daemon."""

from __future__ import annotations

from sortie.config.messages import nearest
from sortie.config.rules import DEFAULT_RULE
from sortie.config.settings import Settings
from sortie.model import Issue, SortieError
from sortie.scheduler import policy_of
from sortie.scheduler.rule_choice import decides
from sortie.store import Recovered
from sortie.store.readonly import can_be_read, read_state


def settings_for(settings: Settings, issue: Issue) -> Settings:
    """Return the settings of the rule on record for an issue, else of the one that would be chosen
    now. Raises StoreError."""
    recorded = _recorded(settings)
    return settings.of_rule(decides(policy_of(settings), issue, recorded.rules.get(issue.id)))


def settings_of_rule(settings: Settings, name: str) -> Settings:
    """Return the settings of the rule of this name. Raises SortieError where there is none."""
    if name in ("", DEFAULT_RULE):
        return settings
    if all(rule.name != name for rule in settings.rules):
        known = [rule.name for rule in settings.rules]
        hint = nearest(name, [*known, DEFAULT_RULE]) if known else "the settings have no rules"
        raise SortieError(f"there is no rule {name}; {hint}")
    return settings.of_rule(name)


def _recorded(settings: Settings) -> Recovered:
    """Return what is on record, where that can tell a rule."""
    if not settings.rules or not can_be_read(settings.database):
        return Recovered()
    return read_state(settings.database)
