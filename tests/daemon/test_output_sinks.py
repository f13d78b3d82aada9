"""Of output, the busiest of all facts, only those sinks are told that do something with it."""

from __future__ import annotations

import pickle
from dataclasses import fields

import pytest

from sortie.daemon.last_failures import LastFailures
from sortie.daemon.recent_activity import RecentActivity
from sortie.daemon.service_manager import ServiceManager
from sortie.daemon.totals import RunTotals
from sortie.daemon.wall_time import utc_now
from sortie.model import RunId
from sortie.store import Totals
from sortie.telemetry import Publish, facts

OTHERS: list[Publish] = [
    RecentActivity(utc_now),
    RunTotals(Totals(**{field.name: 0 for field in fields(Totals)})),
    LastFailures(utc_now),
    ServiceManager(None, None, lambda _: None),
]


def state(sink: Publish) -> bytes:
    """Return what a sink knows, without what it was given to work with."""
    return pickle.dumps({name: v for name, v in vars(sink).items() if not callable(v)})


@pytest.mark.parametrize("sink", OTHERS, ids=lambda sink: type(sink).__name__)
def test_the_others_would_do_nothing_with_it(sink: Publish) -> None:
    """So that the daemon need not tell them."""
    before = state(sink)

    sink(facts.AgentSpoke(run_id=RunId("r1"), agent="kiro", lines=1, message="x", text="x"))

    assert state(sink) == before
