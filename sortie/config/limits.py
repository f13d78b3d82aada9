"""Limits by state: entries that limit nothing are reported, and dropped where they are no limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from sortie.config.messages import describe, nearest
from sortie.config.report import Finding, Report
from sortie.config.settings import AgentSettings, TrackerSettings
from sortie.config.values import LARGEST
from sortie.documents import Node
from sortie.model import state_key

_LIMITS_PATH = ("agent", "max_concurrent_agents_by_state")


def drop_useless_limits(report: Report) -> None:
    """Bring the states into their compared form and drop entries that are no limit."""
    node = report.document.at(_LIMITS_PATH)
    if node is None or not isinstance(node.value, Mapping):
        return
    kept: dict[str, Node] = {}
    for state, entry in node.value.items():
        path = (*_LIMITS_PATH, state)
        if not _is_limit(entry.value):
            message = f"is ignored: a limit is a whole number above 0, not {describe(entry.value)}"
            report.warning(entry, path, message)
            continue
        if state_key(state) in kept:
            report.warning(entry, path, "replaces the limit of the same state above")
        kept[state_key(state)] = entry
    report.replace(_LIMITS_PATH, replace(node, value=kept))


def limit_findings(agent: AgentSettings, tracker: TrackerSettings) -> Iterator[Finding]:
    """Yield the limits for states in which no agent works."""
    names = tracker.active_states
    active = {state_key(name) for name in names}
    for state in agent.max_concurrent_agents_by_state:
        if active and state not in active:
            message = f"limits nothing: it is none of active_states; {nearest(state, names)}"
            yield Finding(
                path=(*_LIMITS_PATH, state),
                message=message,
                severity="warning",
                needs=(("tracker", "active_states"),),
            )


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST
