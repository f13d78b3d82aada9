"""The fake agent keeps the port as real adapters do: it passes their suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.agents import SessionParams
from sortie.model import RunId
from sortie.model.turns import NOTIFICATION_LIMIT
from tests.agents.fake import Completes, Fails, FakeAgent, Silent, Step
from tests.contract.test_agent import (
    Subject,
    test_a_failure_is_a_result,
    test_a_session_needs_a_workspace,
    test_a_success_has_no_error,
    test_cancelling_leaves_no_process,
    test_leaving_is_safe_at_any_time,
    test_notifications_are_bounded,
    test_sessions_run_at_the_same_time,
    test_turns_are_serial,
    test_turns_follow_one_another,
)
from tests.transports.fake import FakeTransport

__all__ = [
    "test_a_failure_is_a_result",
    "test_a_session_needs_a_workspace",
    "test_a_success_has_no_error",
    "test_cancelling_leaves_no_process",
    "test_notifications_are_bounded",
    "test_sessions_run_at_the_same_time",
    "test_leaving_is_safe_at_any_time",
    "test_turns_are_serial",
    "test_turns_follow_one_another",
]


class Obedient(FakeAgent):
    """Does what the prompt names, so that the suite can choose."""

    def _next_step(self, identifier: str) -> Step:
        long_line = "x" * (2 * NOTIFICATION_LIMIT)
        steps: dict[str, Step] = {
            "succeed": Completes(after=0.0),
            "fail": Fails(after=0.0),
            "talk": Completes(after=0.0, says=(long_line, "x")),
            "hang": Silent(),
        }
        return steps[self.prompts[-1]]


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """Give a fake in the place of an adapter."""
    workspace = str(tmp_path)
    return Subject(
        agent=Obedient(),
        params=SessionParams(
            run_id=RunId("run-1"),
            workspace=workspace,
            transport=FakeTransport(directories=[workspace]),
            env={},
        ),
        success="succeed",
        failure="fail",
        long_line="talk",
        hang="hang",
    )
