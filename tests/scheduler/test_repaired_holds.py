"""What ends a hold at a start of the daemon."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from sortie.model import HoldReason, Spending
from sortie.scheduler import Policy
from sortie.scheduler.budgets import Allowance
from sortie.scheduler.claims import Held
from sortie.scheduler.holds import repaired
from tests.scheduler.driver import POLICY, issue

BUDGET = replace(POLICY, max_sessions=2)
REVIEW = replace(POLICY, handoff_state="Review")
TOKENS = replace(POLICY, per_issue=Allowance(tokens=100))
USED = Spending(output_tokens=100)
ANEW = "the daemon was started anew"


@pytest.mark.parametrize(
    ("reason", "policy", "has_program", "ended_by"),
    [
        (HoldReason.AGENT_NOT_FOUND, POLICY, True, "the agent's program is found"),
        (HoldReason.AGENT_NOT_FOUND, POLICY, False, None),
        (HoldReason.ADAPTER_SETTINGS, POLICY, False, ANEW),
        (HoldReason.INVALID_WORKSPACE_CWD, POLICY, False, ANEW),
        (HoldReason.SESSION_BUDGET_EXHAUSTED, BUDGET, True, None),
        (
            HoldReason.SESSION_BUDGET_EXHAUSTED,
            replace(BUDGET, max_sessions=3),
            True,
            "agent.max_sessions allows more sessions now",
        ),
        (
            HoldReason.SESSION_BUDGET_EXHAUSTED,
            POLICY,
            True,
            "agent.max_sessions allows more sessions now",
        ),
        (HoldReason.USAGE_BUDGET_EXHAUSTED, TOKENS, True, None),
        (HoldReason.USAGE_BUDGET_EXHAUSTED, POLICY, True, "the settings allow it to use more now"),
        (HoldReason.HANDOFF_FAILED, REVIEW, True, None),
        (HoldReason.HANDOFF_FAILED, POLICY, True, "tracker.handoff_state is another now"),
        (HoldReason.AGENT_BLOCKED, POLICY, True, None),
        (HoldReason.INTERNAL_ERROR, POLICY, True, None),
        (HoldReason.OPERATOR, POLICY, True, None),
    ],
)
def test_a_start_ends_the_holds_whose_cause_is_repaired(
    reason: HoldReason, policy: Policy, has_program: bool, ended_by: str | None
) -> None:
    """The settings and the program of now decide; what people or the agent said stands."""
    detail = "it could not be moved to Review: forbidden"
    held = Held(issue=issue(), reason=reason, detail=detail, since=0.0, handoff_state="Review")

    assert repaired(held, policy, 2, USED, has_program=has_program) == ended_by
