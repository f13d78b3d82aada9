"""Holds whose cause is the configuration or a missing program, and what repairs end them."""

from __future__ import annotations

from sortie.model import HoldReason
from sortie.scheduler.claims import Held
from sortie.scheduler.policy import Policy
from sortie.scheduler.rules import CONFIGURATION_HOLDS, handoff_failure
from sortie.scheduler.state import SchedulerState

_FOUND = "the agent's program is found"


def ended_by_reload(claim: Held, old: Policy, new: Policy) -> bool:
    """Tell whether other settings end a hold."""
    if claim.reason is HoldReason.SESSION_BUDGET_EXHAUSTED:
        return new.max_sessions == 0 or new.max_sessions > old.max_sessions > 0
    if claim.reason is HoldReason.HANDOFF_FAILED:
        return old.handoff_state != new.handoff_state
    return claim.reason in CONFIGURATION_HOLDS


def program_appeared(state: SchedulerState) -> None:
    """Let go what was held because the agent's program was missing."""
    for claim in list(state.claims.values()):
        if isinstance(claim, Held) and claim.reason is HoldReason.AGENT_NOT_FOUND:
            state.end_hold(claim, _FOUND)


def repaired(claim: Held, policy: Policy, sessions: int, *, has_program: bool) -> str | None:
    """Say what ends a hold at a start of the daemon, None where nothing does.

    ``policy`` is of the settings of now, ``sessions`` how many the issue had; ``has_program``
    tells whether the agent's program was found.
    """
    match claim.reason:
        case HoldReason.AGENT_NOT_FOUND:
            return _FOUND if has_program else None
        case reason if reason in CONFIGURATION_HOLDS:
            return "the daemon was started anew"
        case HoldReason.SESSION_BUDGET_EXHAUSTED:
            spent = 0 < policy.max_sessions <= sessions
            return None if spent else "agent.max_sessions allows more sessions now"
        case HoldReason.HANDOFF_FAILED:
            same = claim.detail.startswith(handoff_failure(policy.handoff_state))
            return None if same else "tracker.handoff_state is another now"
        case _:
            return None
