"""The views of webhooks, made from the scheduler's snapshot and from what has come."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

from sortie.daemon.wall_time import wall_time
from sortie.scheduler import Snapshot
from sortie.scheduler.webhook_table import Arrival
from sortie.web.times import Time
from sortie.web.webhooks.records import KindRecord
from sortie.web.webhooks.views import ArrivalView, RejectionsView, WebhookView


def webhook_views(
    snapshot: Snapshot, record_of: Callable[[str], KindRecord]
) -> tuple[WebhookView, ...]:
    """Return the kinds that tell of issues or pull requests of the workflow."""
    kinds = dict.fromkeys(arrival.kind for arrival in snapshot.arrivals)
    return tuple(_view(kind, snapshot, record_of(kind)) for kind in kinds)


def _view(kind: str, snapshot: Snapshot, record: KindRecord) -> WebhookView:
    return WebhookView(
        kind=kind,
        received=record.received,
        last_at=_unix(record.last_at),
        rejected=tuple(
            RejectionsView(reason=reason, count=one.count, last_at=_at(one.last_at))
            for reason, one in sorted(record.rejected.items())
        ),
        arrivals=tuple(
            _arrival(one, snapshot.now) for one in snapshot.arrivals if one.kind == kind
        ),
    )


def _arrival(arrival: Arrival, now: float) -> ArrivalView:
    return ArrivalView(
        subject=arrival.subject,
        counted_on=arrival.counts(now),
        last_at=_time(arrival.last),
        missed=arrival.missed,
        missed_at=_time(arrival.missed_at),
        distrusted_until=_time(arrival.distrusted_until)
        if now < arrival.distrusted_until
        else None,
    )


def _time(at: float) -> Time | None:
    return None if at == -math.inf else wall_time(at)


def _unix(at: float | None) -> Time | None:
    return None if at is None else _at(at)


def _at(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)
