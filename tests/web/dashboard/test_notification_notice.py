"""The dashboard says where notifications do not arrive."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sortie.web.dashboard.board import StatusNotice, status_of
from sortie.web.health import Health
from sortie.web.notifications import NotificationTargetView
from tests.web.conftest import STATE

WAITS = NotificationTargetView(
    target="chat",
    waiting=2,
    oldest_at=datetime(2026, 1, 1, 11, tzinfo=UTC),
    dead=0,
    error=None,
)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (WAITS, None),
        (replace(WAITS, waiting=0, error="late"), None),
        (replace(WAITS, error="late"), "chat: 2 notifications waiting: late"),
        (replace(WAITS, dead=1), "chat: 1 notification given up"),
    ],
)
def test_a_target_in_trouble_is_a_notice(target: NotificationTargetView, said: str | None) -> None:
    """Waiting alone is none, as in quiet hours; neither is an error that is over."""
    state = replace(STATE, notifications=(target,))

    notices = status_of(state, Health(ready=True), None).notices

    expected = StatusNotice("warn", "Notifications do not arrive", (said or "",))
    assert (expected in notices) is (said is not None)
    assert ("Notifications do not arrive" in {one.title for one in notices}) is (said is not None)
