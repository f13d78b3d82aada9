"""The state as events: what they say, put together, is the state."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sortie.web.broadcaster import Message
from sortie.web.state import Counts, StateView, to_json
from sortie.web.state_feed import BY_ISSUE, StateFeed
from tests.web.conftest import NOON, STATE
from tests.web.dashboard.watched import watched
from tests.web.leases import HERE, LEASE

(RUNNING,), (WAITING,), (HELD,) = STATE.running, STATE.waiting, STATE.held
WATCHED = watched(NOON)[0]
ISSUES = st.lists(st.sampled_from("ABCDE"), unique=True)


def follow(document: dict[str, Any], message: Message) -> dict[str, Any]:
    """Return the state after an event, as a client reckons it."""
    data = json.loads(message.data)
    if message.event == "state":
        return dict(data)
    lists = {}
    for name in BY_ISSUE:
        rows = {row["issue_id"]: row for row in document[name]}
        rows |= {row["issue_id"]: row for row in data["state"].get(name, ())}
        gone = data["removed"].get(name, ())
        lists[name] = [row for key, row in rows.items() if key not in gone]
    return {**document, **data["state"], **lists}


@st.composite
def states(draw: st.DrawFn) -> StateView:
    turn = st.integers(0, 1)
    return replace(
        STATE,
        status=draw(st.sampled_from(["running", "paused"])),
        counts=Counts(running=draw(turn), waiting=0, held=0),
        running=tuple(replace(RUNNING, issue_id=i, turn=draw(turn)) for i in draw(ISSUES)),
        waiting=tuple(replace(WAITING, issue_id=i, attempt=draw(turn)) for i in draw(ISSUES)),
        held=tuple(replace(HELD, issue_id=i) for i in draw(ISSUES)),
        watched=tuple(replace(WATCHED, issue_id=i, number=draw(turn)) for i in draw(ISSUES)),
    )


@given(st.lists(states(), min_size=2, max_size=5))
def test_whoever_follows_has_the_state(seen: list[StateView]) -> None:
    """After any events a client has what the state's route would have told it, but for order."""
    looks = iter(seen)
    feed = StateFeed(lambda: next(looks))
    feed.changes()
    (first,) = feed.whole()
    document = follow({}, first)

    for state in seen[1:]:
        for message in feed.changes():
            document = follow(document, message)

        expected = json.loads(to_json(state))
        for name in BY_ISSUE:
            document[name].sort(key=lambda row: str(row["issue_id"]))
            expected[name].sort(key=lambda row: str(row["issue_id"]))
        assert document == expected


def test_what_stays_is_not_told() -> None:
    """A time alone is no change, and one that changes comes without the others."""
    later = replace(STATE, generated_at=NOON.replace(hour=13))
    held = replace(later, held=(replace(HELD, detail="other"),))
    looks = iter([STATE, later, held])
    feed = StateFeed(lambda: next(looks))

    first, second, (third,) = feed.changes(), feed.changes(), feed.changes()

    assert (first, second) == ((), ())
    assert json.loads(third.data) == {
        "state": {
            "generated_at": "2026-01-01T13:00:00.000000Z",
            "held": [json.loads(to_json(held))["held"][0]],
        },
        "removed": {},
    }


def test_time_that_passes_is_no_change_of_a_lease() -> None:
    """A renewal every few seconds wakes no follower; another leader does."""
    states = [replace(STATE, lease=LEASE, daemons=(HERE,))]
    renewed = replace(LEASE, seconds_left=15.0, seconds_since_renewal=0.0)
    states.append(
        replace(STATE, lease=renewed, daemons=(replace(HERE, heard_at=NOON + timedelta(5)),))
    )
    states.append(replace(STATE, lease=replace(renewed, leader="west:9"), daemons=(HERE,)))
    feed = StateFeed(iter(states).__next__)

    told = [feed.changes() for _ in states]

    assert [len(messages) for messages in told] == [0, 0, 1]
    assert list(json.loads(told[2][0].data)["state"]) == ["generated_at", "lease"]


def test_every_list_by_issue_is_known() -> None:
    """A list whose entries have an issue and can be long is told by its differences."""
    short = {"queued", "blocked", "handed_off"}  # twenty entries at most, and their order counts
    lists = {field.name for field in fields(StateView) if "tuple[" in str(field.type)}

    assert lists - short - {"hosts", "daemons", "notifications"} == set(BY_ISSUE)


def test_a_lone_surrogate_breaks_nothing() -> None:
    """As a file name may hold."""
    odd = replace(STATE, held=(replace(HELD, detail="x\ud800"),))
    looks = iter([STATE, odd])
    feed = StateFeed(lambda: next(looks))
    feed.changes()

    (message,) = feed.changes()

    assert json.loads(message.data)["state"]["held"][0]["detail"] == "x\ud800"
