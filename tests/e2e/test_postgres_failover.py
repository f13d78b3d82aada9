"""A daemon whose PostgreSQL server fails over to its standby, for real."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.store.postgres_standby import postgres_pair, url_of

pytestmark = pytest.mark.full

WAIT_FOR_GO = "touch ../../waits; while [ ! -e ../../go ]; do sleep 0.05; done"
"""A hook that keeps a run under way."""


def _use(place: Place, schema: str) -> None:
    place.write_workflow(
        store={"url": "$SORTIE_STORE_URL", "schema": schema},
        hooks={"after_run": WAIT_FOR_GO, "timeout_ms": 120_000},
        agent={"max_concurrent_agents": 5},
    )


async def _history(place: Place, url: str) -> list[tuple[str, str]]:
    ran = await place.sortie("history", "--format", "json", SORTIE_STORE_URL=url)
    return sorted((row["issue"], row["status"]) for row in json.loads(ran.out))


async def test_nothing_is_lost_with_a_synchronous_standby(place: Place, start: Start) -> None:
    """A daemon with runs under way goes on at the standby: each is recorded, and none runs again.
    The former primary, started again, opens no store: it waits for a standby that is none."""
    with postgres_pair(synchronous=True) as (primary, standby):
        url, schema = url_of(primary, standby), primary.schema()
        _use(place, schema)
        place.add_issue("A")
        async with start(SORTIE_STORE_URL=url) as daemon:
            await place.until_there("waits")
            primary.kill()
            (place.root / "go").touch()  # the end of the run waits for a server
            standby.promote()
            place.add_issue("B")
            for issue in ("A", "B"):
                await daemon.line("issue.moved", issue=issue, lifecycle="handoff")
            primary.start()
            place.add_issue("C")
            await daemon.line("issue.moved", issue="C", lifecycle="handoff")
        there = await _history(place, standby.url)
        former = await _history(place, primary.url)
        refused = await place.sortie(
            "run", "--port", "0", "--exit-when-idle", SORTIE_STORE_URL=primary.url
        )

    assert there == [("A", "succeeded"), ("B", "succeeded"), ("C", "succeeded")]
    assert len(place.agents()) == 3
    assert former == [("A", "running")]
    assert refused.code == 1
    assert "cannot keep the leases" in refused.err


async def test_a_standby_that_was_behind_is_noticed(place: Place, start: Start) -> None:
    """The daemon says what happened and starts nothing; the next one goes on from what is there."""
    with postgres_pair(synchronous=False) as (primary, standby):
        url, schema = url_of(primary, standby), primary.schema()
        _use(place, schema)
        place.add_issue("A")
        async with start(SORTIE_STORE_URL=url) as daemon:
            await place.until_there("waits")
            standby.stop()
            place.add_issue("B")
            await daemon.line("run.started", issue="B")  # which the standby never learns
            primary.kill()
            standby.start()  # it would end with a thread of its own
            standby.promote()
            (place.root / "go").touch()
            place.add_issue("C")
            await daemon.ready(503, "the server lost what was recorded last")
            await daemon.line("poll.skipped", failures=20)
            begun = daemon.lines("run.started", issue="C")
            daemon.signal(signal.SIGTERM)
            code = await daemon.exit_code()
            last_words = daemon.strays.pop()
        async with start(SORTIE_STORE_URL=url) as daemon:
            for issue in ("A", "B", "C"):
                await daemon.line("issue.moved", issue=issue, lifecycle="handoff")
        rows = await _history(place, standby.url)

    assert begun == []
    assert code == 1
    assert "restart this daemon" in last_words
    assert rows == [
        ("A", "interrupted"),
        ("A", "succeeded"),
        ("B", "succeeded"),
        ("C", "succeeded"),
    ]
