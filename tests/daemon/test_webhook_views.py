"""What people are told of webhooks."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from sortie.daemon.webhook_views import webhook_views
from sortie.scheduler.webhook_table import TRUST, Arrival
from sortie.web.webhooks.records import KindRecord, RejectedDeliveries
from tests.scheduler.driver import POLICY, Driver
from tests.scheduler.test_webhooks import HOOKED, told

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC).timestamp()


def record(_kind: str) -> KindRecord:
    """Return what has come of a kind."""
    rejected = {
        "replayed": RejectedDeliveries(count=9, last_at=NOON),
        "signature": RejectedDeliveries(count=1200, last_at=NOON + 1),
    }
    return KindRecord(received=1, last_at=NOON, rejected=rejected)  # type: ignore[arg-type]


def test_nothing_is_told_where_nothing_is_set_up() -> None:
    """No line stands for what is not used."""
    assert webhook_views(Driver(POLICY).scheduler.snapshot(0.0), record) == ()


def test_a_kind_from_which_nothing_has_come_is_not_well() -> None:
    """Its polls are as frequent as ever."""
    (view,) = webhook_views(Driver(HOOKED).scheduler.snapshot(0.0), lambda _kind: KindRecord())

    assert not view.is_well
    assert view.words == "github: 0 deliveries taken; none about issues"
    assert view.last_at is None


async def test_what_has_come_and_what_was_rejected_is_told_with_its_time() -> None:
    """Repeated deliveries are no trouble: services send them again."""
    made = Driver(HOOKED)
    made.tell(told("7"))

    (view,) = webhook_views(made.scheduler.snapshot(1.0), record)

    assert view.is_well
    assert view.words.startswith("github: 1 delivery taken; the last about issues at 20")
    assert view.words.endswith(
        "; rejected 1,200 for their signature, the last at 2026-06-01 12:00:01Z"
    )
    assert [one.reason for one in view.rejected] == ["replayed", "signature"]


async def test_what_came_too_long_ago_and_what_was_missed_is_told() -> None:
    """With the time until which deliveries are not counted on."""
    made = Driver(HOOKED)
    made.tell(told("7"))
    snapshot = made.scheduler.snapshot(TRUST + 1.0)
    (late,) = webhook_views(snapshot, record)
    arrival = made.scheduler.snapshot(0.0).arrivals[0].failed(2, 10.0)

    assert not late.is_well
    assert ", too long ago to be counted on" in late.words
    assert arrival.missed == 2
    assert not arrival.counts(11.0)
    assert arrival.distrusted_until == 10.0 + TRUST
    assert Arrival(kind="github", subject="issues").last == -math.inf
