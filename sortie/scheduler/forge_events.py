"""What is told of pull requests, by looks, errands, merges and webhooks, and what takes it in."""

from __future__ import annotations

from typing import assert_never

from sortie.scheduler import events as ev
from sortie.scheduler.errands import errand_done
from sortie.scheduler.merging import merge_tried
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watching import seen
from sortie.scheduler.webhooks import deliveries_seen

ForgeEvent = ev.PullRequestsSeen | ev.ErrandDone | ev.MergeTried | ev.DeliveriesSeen
"""What is told of pull requests; webhooks tell of issues as well."""


def take_in(state: SchedulerState, event: ForgeEvent, now: float) -> None:
    """Take in what is told of pull requests."""
    match event:
        case ev.PullRequestsSeen():
            seen(state, event, now)
        case ev.ErrandDone():
            errand_done(state, event, now)
        case ev.MergeTried():
            merge_tried(state, event, now)
        case ev.DeliveriesSeen():
            deliveries_seen(state, event, now)
        case _:
            assert_never(event)
