"""The page about the dashboard agrees with it."""

from __future__ import annotations

from sortie.daemon import recent_activity, tracker_status
from sortie.web.dashboard import board
from sortie.web.dashboard.activity import BUCKET, BUCKETS
from sortie.web.event_stream import StreamRoom
from tests.docs.pages import page, table, word
from tests.web.dashboard.served import Served, World

TEXT = page("dashboard.md")


def test_every_address_is_listed() -> None:
    """The table of routes holds those of the pages, and no other."""
    routes = Served(World()).dashboard.routes(StreamRoom(4))

    assert {word(row["route"]) for row in table(TEXT, "route")} == {route.path for route in routes}


def test_numbers_are_those_of_the_code() -> None:
    """How many rows there are, and how far back the charts go."""
    parts = {row["part"]: row["what it shows"] for row in table(TEXT, "part")}

    assert f"{board.RUNNING} of them" in parts["running"]
    assert f"the first {board.WATCHED}," in parts["pull requests until their merge"]
    assert f"the {board.WAITING} issues" in parts["waiting"]
    assert f"the first {tracker_status.SHOWN_ISSUES} of each" in parts["queued and blocked"]
    assert f"the last {recent_activity.SHOWN_RUNS} that" in parts["recent runs"]
    assert f"last {BUCKET * BUCKETS // 3600} hours" in parts
