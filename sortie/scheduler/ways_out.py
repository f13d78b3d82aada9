"""What ends a wait, a hold or a run, in words for a person."""

from __future__ import annotations

from sortie.model import HoldReason
from sortie.scheduler.claims import Claim, HandingOff, Held, Running, Starting, Waiting
from sortie.scheduler.policy import Policy
from sortie.scheduler.timing import CONFIGURATION_HOLDS

STATE_CHANGE = "a change of its state in the tracker"
_CONTENT_CHANGE = "a change of its content in the tracker (title, description, labels; no comment)"
RETRY_COMMENT = "a comment '/sortie retry' on its pull request"


def ways_out(policy: Policy, claim: Claim | None, *, watched: bool = False) -> tuple[str, ...]:
    """Return what ends a wait, a hold or a run, in words; ``watched``: the issue's pull request
    is."""
    match claim:
        case Held(issue=issue, reason=reason):
            ways = [STATE_CHANGE]
            is_exhausted = reason is HoldReason.REACTION_EXHAUSTED
            if policy.is_active(issue) or watched or is_exhausted:
                ways.insert(0, f"sortie retry {issue.identifier}")
            if reason is HoldReason.QUESTION:
                ways[0] = f"{ways[0]}, which withdraws the question"
                ways.insert(0, "an answer as a comment on the issue")
                ways.insert(0, f"sortie answer {issue.identifier} TEXT")
            if reason is not HoldReason.OPERATOR:
                ways.append(_CONTENT_CHANGE)
            if reason is HoldReason.AGENT_NOT_FOUND:
                ways.append("the agent's program, once it is found")
            if reason in CONFIGURATION_HOLDS:
                ways.append("a reload of the workflow file: a change to it, or SIGHUP")
            elif reason is HoldReason.SESSION_BUDGET_EXHAUSTED:
                ways.append(f"agent.max_sessions above {policy.max_sessions}, or 0")
            elif reason is HoldReason.USAGE_BUDGET_EXHAUSTED:
                ways.append("a higher agent.max_tokens, max_credits or max_cost_usd, or 0")
            elif reason is HoldReason.HANDOFF_FAILED:
                ways.append("another tracker.handoff_state")
            elif is_exhausted:
                ways.append("a push to its pull request by somebody else")
            if watched and policy.reactions.commands is not None:
                ways.append(RETRY_COMMENT)
            return tuple(ways)
        case Waiting(issue=issue) | HandingOff(issue=issue, token=None):
            return (f"sortie retry {issue.identifier}", f"sortie stop {issue.identifier}")
        case Starting(issue=issue) | Running(issue=issue):
            return (f"sortie stop {issue.identifier}",)
        case _:
            return ()
