"""No agent can break the state machine, whatever it writes and when."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.acp.client import ClientConnection
from sortie.acp.events import ClientEvent, PermissionRequested, PromptAnswered
from sortie.json_rpc.connection import ConnectionState
from tests.acp.hostile import ANSWERS, ids, lines, proceed
from tests.fuzz import for_a_while

steps = st.builds(
    lambda known, others: [*known, *others],
    st.sampled_from([[], ["answer", "proceed"], ["answer", "proceed", "answer", "proceed"]]),
    st.lists(
        st.one_of(
            lines,
            st.sampled_from(["proceed", "answer"]),
            st.tuples(st.just("ask") | st.just("permit"), ids),
        ),
        max_size=40,
    ),
)


class _Drive:
    """A connection, what it has sent so far, and the steps that are done with it."""

    def __init__(self) -> None:
        self.client = ClientConnection(line_limit=2000)
        self.sent: list[dict[str, Any]] = []
        self.reached = {self.client.state}

    def do(self, step: Any) -> list[ClientEvent]:
        """Do one step and return the events."""
        events: list[ClientEvent] = []
        match step:
            case bytes():
                events = self.client.feed(step)
            case "proceed":
                proceed(self.client)
            case "answer":
                answer = {"id": self._asked, "result": ANSWERS.get(self.client.state)}
                events = self.client.feed(b"\n" + json.dumps(answer).encode() + b"\n")
            case ("ask", number):
                asked = {"id": number, "method": "session/request_permission"}
                events = self.client.feed(b"\n" + json.dumps(asked).encode() + b"\n")
            case (_, number) if isinstance(number, Hashable):
                self.client.answer_permission(number, "a")  # type: ignore[arg-type]
        self.sent += [json.loads(line) for line in self.client.data_to_send().splitlines()]
        self.reached.add(self.client.state)
        return events

    @property
    def _asked(self) -> Any:
        """The id of the last request that was sent."""
        asked = [each["id"] for each in self.sent if "method" in each and "id" in each]
        return asked[-1] if asked else 1


def _hold(steps: list[Any]) -> None:
    """Each line sent is a message; no permission is forgotten; nothing raises."""
    drive = _Drive()
    client = drive.client
    opened: Counter[str] = Counter()
    ended = 0
    for step in ["proceed", *steps]:
        for event in drive.do(step):
            ended += isinstance(event, PromptAnswered)
            if isinstance(event, PermissionRequested):
                opened[repr(event.id)] += 1
        if client.state not in (ConnectionState.TURN, ConnectionState.DEAD):
            answered = Counter(repr(each["id"]) for each in drive.sent if "result" in each)
            assert opened <= answered  # there are more: those that were declined at once
    client.end()
    assert client.state is ConnectionState.DEAD
    assert client.data_to_send() == b""
    assert all(each["jsonrpc"] == "2.0" for each in drive.sent)
    assert ended <= sum(each.get("method") == "session/prompt" for each in drive.sent)


def test_every_state_is_reached() -> None:
    """The steps that the examples are made of lead through all states that they can."""
    drive = _Drive()
    for step in ["proceed", "answer", "proceed", "answer", "proceed", "proceed", "answer"]:
        drive.do(step)
    drive.client.end()

    of_others = {ConnectionState.SETTING, ConnectionState.READING}
    assert {*drive.reached, drive.client.state} == {*ConnectionState} - of_others


@given(steps)
def test_nothing_that_comes_breaks_it(steps: list[Any]) -> None:
    """See ``_hold``, for a few examples."""
    _hold(steps)


@pytest.mark.full
@pytest.mark.timeout(0)
def test_nothing_breaks_it_for_a_while() -> None:
    """See ``_hold``, for as long as it was asked for."""
    for_a_while(steps, _hold)


@given(st.lists(lines, max_size=30), st.integers(min_value=1, max_value=50))
def test_the_chunks_make_no_difference(chunks: list[bytes], size: int) -> None:
    """Events and answers are the same, however a stream is cut."""
    data = b"".join(chunks)
    whole, cut = _in_turn(), _in_turn()

    told = [event for at in range(0, len(data), size) for event in cut.feed(data[at : at + size])]

    assert repr(whole.feed(data)) == repr(told)  # a NaN is like itself in this way alone
    assert whole.data_to_send() == cut.data_to_send()
    assert whole.state is cut.state


def _in_turn() -> ClientConnection:
    client = ClientConnection()
    proceed(client)
    client.feed(b'{"id":1,"result":{"protocolVersion":1}}\n')
    proceed(client)
    client.feed(b'{"id":2,"result":{"sessionId":"s"}}\n')
    proceed(client)
    assert client.state is ConnectionState.TURN
    client.data_to_send()
    return client
