"""What the scheduler obeys of the settings."""

from __future__ import annotations

from typing import get_args

import pytest

from sortie.config.settings import Settings
from sortie.model import LOCAL
from sortie.scheduler import Effect, Event, Policy, Record, policy_of
from sortie.scheduler.budgets import Allowance
from sortie.scheduler.claims import Claim
from tests.typed import wrong_defaults
from tests.worker.rig import settings_of


def test_every_setting_arrives_in_the_form_in_which_it_is_compared() -> None:
    """States and labels are compared without case and outer blanks; times are seconds."""
    settings = settings_of(
        tracker={
            "active_states": [" Todo", "DOING"],
            "terminal_states": ["Done "],
            "required_labels": ["Ready"],
            "in_progress_state": "Doing",
            "handoff_state": "Review",
            "comments": {"on_completion": True, "on_failure": True},
        },
        polling={"interval_ms": 7000},
        agent={
            "kind": "fake",
            "max_sessions": 3,
            "max_tokens": 100,
            "max_credits": 2.5,
            "max_cost_usd": 1.5,
            "max_concurrent_agents": 4,
            "max_concurrent_agents_by_state": {"todo": 2},
            "max_retry_backoff_ms": 60_000,
            "stop_grace_ms": 9000,
            "inactive_grace_ms": 8000,
        },
        budget={"daily_credits": 9, "daily_cost_usd": 8, "timezone": "Europe/Berlin"},
        worker={"ssh_hosts": ["east", "west"], "max_concurrent_agents_per_host": 5},
    )

    assert policy_of(settings) == Policy(
        active_states=frozenset({"todo", "doing"}),
        terminal_states=frozenset({"done"}),
        required_labels=frozenset({"ready"}),
        in_progress_state="Doing",
        handoff_state="Review",
        comment_on_completion=True,
        comment_on_failure=True,
        poll_interval=7.0,
        max_sessions=3,
        per_issue=Allowance(tokens=100, credits=2.5, cost_usd=1.5),
        per_day=Allowance(credits=9.0, cost_usd=8.0),
        zone="Europe/Berlin",
        max_concurrent_agents=4,
        max_by_state={"todo": 2},
        max_retry_backoff=60.0,
        agent="fake",
        account="fake",
        hosts=("east", "west"),
        max_per_host=5,
        stop_grace=9.0,
        inactive_grace=8.0,
    )


def test_without_hosts_all_runs_are_on_this_machine() -> None:
    """And completion and failure are commented on only where that is asked for."""
    settings: Settings = settings_of()

    policy = policy_of(settings)

    assert (policy.hosts, policy.max_per_host) == ((LOCAL,), None)
    assert (policy.comment_on_completion, policy.comment_on_failure) == (False, False)


@pytest.mark.parametrize(
    "kind",
    [Policy, *get_args(Record), *get_args(Event), *get_args(Effect), *get_args(Claim)],
    ids=lambda kind: kind.__name__,
)
def test_what_is_left_out_is_of_the_declared_kind(kind: type) -> None:
    """A default that is something else is noticed by nobody who leaves the field out."""
    assert wrong_defaults(kind) == []
