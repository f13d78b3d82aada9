"""The client's state machine, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sortie.acp.client import ClientConnection
from sortie.acp.events import (
    ClientEvent,
    ExtensionTold,
    PermissionRequested,
    PromptAnswered,
    SessionUpdated,
)
from sortie.json_rpc.connection import ConnectionState
from sortie.json_rpc.events import (
    Initialized,
    RequestAnswered,
    RequestDeclined,
    RequestFailed,
    SessionOpened,
)

CANCELLED = {"outcome": {"outcome": "cancelled"}}
OPTIONS = [{"optionId": "a", "kind": "allow_once"}]


class Peer:
    """A connection, and the agent at its other end as whoever tests it plays it."""

    def __init__(self) -> None:
        self.client = ClientConnection()

    def tell(self, **message: Any) -> list[ClientEvent]:
        """Have the agent say something."""
        return self.client.feed(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, number: object, method: str = "session/request_permission") -> list[ClientEvent]:
        """Have the agent ask something."""
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": OPTIONS}
        return self.tell(id=number, method=method, params=params)

    def update(self, session: str = "s", kind: str = "plan") -> list[ClientEvent]:
        """Have the agent tell something of a session."""
        return self.tell(
            method="session/update",
            params={"sessionId": session, "update": {"sessionUpdate": kind}},
        )

    @property
    def heard(self) -> list[dict[str, Any]]:
        """What the agent hears, since the last look."""
        return [json.loads(line) for line in self.client.data_to_send().splitlines()]

    def idle(self) -> Peer:
        """Go on until there is a session."""
        self.client.initialize("n", "N", "1")
        self.tell(id=1, result={"protocolVersion": 1})
        self.client.open("/w")
        self.tell(id=2, result={"sessionId": "s"})
        assert self.heard
        return self

    def turn(self) -> Peer:
        """Go on until a turn has begun."""
        self.idle().client.prompt("do it")
        assert self.heard
        return self


def test_from_the_greeting_to_the_end_of_a_turn() -> None:
    """What is sent is what the protocol says, and each answer is an event."""
    peer, events = Peer(), list[ClientEvent]()

    peer.client.initialize("sortie", "Sortie", "1.0")
    events += peer.tell(id=1, result={"protocolVersion": 1, "agentInfo": {"name": "x"}})
    peer.client.open("/w")
    events += peer.tell(id=2, result={"sessionId": "s", "modes": None})
    peer.client.set("session/set_mode", {"modeId": "m"})
    events += peer.tell(id=3, result={})
    peer.client.prompt("ü\u2028")
    events += peer.tell(id=4, result={"stopReason": "end_turn"})

    assert events == [
        Initialized({"protocolVersion": 1, "agentInfo": {"name": "x"}}),
        SessionOpened("s", {"sessionId": "s", "modes": None}),
        RequestAnswered("session/set_mode", {}),
        PromptAnswered("end_turn", {"stopReason": "end_turn"}),
    ]
    assert [(sent["id"], sent["method"], sent["params"]) for sent in peer.heard] == [
        (
            1,
            "initialize",
            {
                "protocolVersion": 1,
                "clientCapabilities": {
                    "fs": {"readTextFile": False, "writeTextFile": False},
                    "terminal": False,
                },
                "clientInfo": {"name": "sortie", "title": "Sortie", "version": "1.0"},
            },
        ),
        (2, "session/new", {"cwd": "/w", "mcpServers": []}),
        (3, "session/set_mode", {"sessionId": "s", "modeId": "m"}),
        (4, "session/prompt", {"sessionId": "s", "prompt": [{"type": "text", "text": "ü\u2028"}]}),
    ]
    assert peer.client.state is ConnectionState.IDLE


def test_a_prompt_says_under_what_its_spans_belong() -> None:
    """In the key of ``_meta`` that the protocol keeps for it."""
    peer = Peer().idle()
    peer.client.prompt("x", "00-0a-0b-01")

    assert peer.heard[-1]["params"] == {
        "sessionId": "s",
        "prompt": [{"type": "text", "text": "x"}],
        "_meta": {"traceparent": "00-0a-0b-01"},
    }


@pytest.mark.parametrize("version", [2, 0, "1", True, 1.0, None])
def test_another_version_ends_it(version: object) -> None:
    """Nothing but the number 1 is taken."""
    peer = Peer()
    peer.client.initialize("n", "N", "1")

    (event,) = peer.tell(id=1, result={"protocolVersion": version})

    assert isinstance(event, RequestFailed)
    assert peer.client.state is ConnectionState.DEAD


def test_a_session_that_is_gone_leaves_room_for_a_new_one() -> None:
    """After an error to load the same connection can open a new session."""
    peer = Peer()
    peer.client.initialize("n", "N", "1")
    peer.tell(id=1, result={"protocolVersion": 1})
    peer.client.open("/w", "session/load", "old")

    replayed = peer.update("old")
    failed = peer.tell(id=2, error={"code": -32002, "message": "gone"})
    peer.client.open("/w")
    opened = peer.tell(id=3, result={"sessionId": "new"})

    assert replayed == [SessionUpdated("plan", {"sessionUpdate": "plan"}, "replay")]
    assert failed == [RequestFailed("session/load", -32002, "gone")]
    assert opened == [SessionOpened("new", {"sessionId": "new"})]


def test_a_session_is_told_of_servers_however_it_opens() -> None:
    """Begun or gone on with, it connects to the same ones."""
    server = {"name": "sortie", "command": "/bin/sh", "args": ["connect.sh"], "env": []}
    for how, named in (("session/new", ""), ("session/load", "s"), ("session/resume", "s")):
        peer = Peer()
        peer.client.initialize("n", "N", "1")
        peer.tell(id=1, result={"protocolVersion": 1})
        peer.client.open("/w", how, named, [server])  # type: ignore[arg-type]

        assert peer.heard[-1]["params"]["mcpServers"] == [server]


def test_a_new_session_needs_a_name() -> None:
    """An answer without an id is a failure, and a loaded session keeps its own."""
    peer = Peer()
    peer.client.initialize("n", "N", "1")
    peer.tell(id=1, result={"protocolVersion": 1})
    peer.client.open("/w")
    (failed,) = peer.tell(id=2, result={"sessionId": ""})
    peer.client.open("/w", "session/load", "old")
    opened = peer.tell(id=3, result=None)

    assert isinstance(failed, RequestFailed)
    assert opened == [SessionOpened("old", {})]


@pytest.mark.parametrize("number", [0, "0", None, "x", 1])
def test_a_permission_is_answered_by_its_id(number: object) -> None:
    """Ids of the agent's are its own, also where they are 0, null or one of ours."""
    peer = Peer().turn()

    asked = peer.ask(number)
    peer.client.answer_permission(number, "a")  # type: ignore[arg-type]
    peer.client.answer_permission(number, "a")  # type: ignore[arg-type]

    assert asked == [PermissionRequested(number, {"toolCallId": "t"}, (OPTIONS[0],))]  # type: ignore[arg-type]
    chosen = {"outcome": {"outcome": "selected", "optionId": "a"}}
    assert peer.heard == [{"jsonrpc": "2.0", "id": number, "result": chosen}]


def test_an_id_that_is_open_is_not_opened_again() -> None:
    """The second request is refused, the first one still open."""
    peer = Peer().turn()

    peer.ask(0)
    (again,) = peer.ask(0)
    peer.client.answer_permission(0, None)

    assert isinstance(again, RequestDeclined)
    refused, answered = peer.heard
    assert (refused["error"]["code"], answered["result"]) == (-32600, CANCELLED)


def test_a_cancel_answers_every_permission() -> None:
    """Those that are open, and those that still come; the prompt's answer ends it."""
    peer = Peer().turn()
    peer.ask(0)
    peer.ask("0")

    peer.client.cancel()
    peer.client.cancel()
    late = peer.ask(1)
    taken_back = peer.tell(method="$/cancel_request", params={"requestId": 0})
    peer.client.answer_permission(0, "a")
    ended = peer.tell(id=3, result={"stopReason": "cancelled"})

    cancel, *answers = peer.heard
    assert cancel == {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}
    assert answers == [{"jsonrpc": "2.0", "id": n, "result": CANCELLED} for n in (0, "0", 1)]
    assert [type(event) for event in (*late, *taken_back, *ended)] == [
        RequestDeclined,
        ExtensionTold,
        PromptAnswered,
    ]
    assert peer.client.state is ConnectionState.IDLE


def test_a_permission_that_is_taken_back_is_answered() -> None:
    """The agent need not wait for an answer that it no longer wants."""
    peer = Peer().turn()
    peer.ask(0)

    peer.tell(method="$/cancel_request", params={"requestId": 0})
    peer.tell(method="$/cancel_request", params={"requestId": {}})

    assert peer.heard == [{"jsonrpc": "2.0", "id": 0, "result": CANCELLED}]


def test_no_permission_stays_open_behind_its_turn() -> None:
    """Where the prompt is answered first, nobody else would answer it any more."""
    peer = Peer().turn()
    peer.ask(0)

    peer.tell(id=3, result={"stopReason": "end_turn"})

    assert peer.heard == [{"jsonrpc": "2.0", "id": 0, "result": CANCELLED}]


def test_outside_of_a_turn_nothing_is_permitted() -> None:
    """Before there is a session, and between turns."""
    early, between = Peer(), Peer().idle()

    (refused,) = early.ask(0)
    between.ask(0)

    assert isinstance(refused, RequestDeclined)
    assert early.heard == between.heard == [{"jsonrpc": "2.0", "id": 0, "result": CANCELLED}]


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "elicitation/create"])
def test_what_is_not_offered_is_declined(method: str) -> None:
    """A request that we do not know is answered at once, with an error."""
    peer = Peer().turn()

    (event,) = peer.ask(0, method)

    (answer,) = peer.heard
    assert isinstance(event, RequestDeclined)
    assert (event.method, answer["id"], answer["error"]["code"]) == (method, 0, -32601)


def test_a_request_that_cannot_be_answered_is_an_error() -> None:
    """An id of no known type gets the answer that the protocol has for it."""
    peer = Peer().turn()

    peer.ask({})

    assert [(answer["id"], answer["error"]["code"]) for answer in peer.heard] == [(None, -32600)]


def test_answers_that_nobody_waits_for_are_let_go() -> None:
    """A late one, and ones with ids of other types, change no state."""
    peer = Peer().turn()

    events = [*peer.tell(id=2, result={}), *peer.tell(id=3.0, result={}), *peer.tell(id="3")]

    assert events == []
    assert peer.client.state is ConnectionState.TURN


@pytest.mark.parametrize(
    ("prepare", "when"), [(Peer.idle, "late"), (Peer.turn, "turn")], ids=["idle", "turn"]
)
def test_updates_are_told_with_their_place(prepare: Callable[[Peer], Peer], when: str) -> None:
    """Output counts in a turn; other sessions are told apart."""
    peer = prepare(Peer())

    (ours,) = peer.update()
    (other,) = peer.update("other")

    assert isinstance(ours, SessionUpdated)
    assert isinstance(other, SessionUpdated)
    assert [(e.when, e.ours) for e in (ours, other)] == [(when, True), (when, False)]


def test_a_failed_prompt_ends_the_turn() -> None:
    """The next prompt can follow."""
    peer = Peer().turn()

    failed = peer.tell(id=3, error={"code": 429, "message": "slow down", "data": {"a": 1}})
    peer.client.prompt("again")

    assert failed == [RequestFailed("session/prompt", 429, "slow down", {"a": 1})]
    assert peer.heard[0]["id"] == 4


def test_the_end_of_the_stream_is_the_end() -> None:
    """A last line without its end counts, what was asked stays unanswered, nothing is sent."""
    peer = Peer().turn()
    peer.ask(0)
    peer.client.cancel()
    peer.client.feed(b'{"method":"_x/y"}')

    events = peer.client.end()

    assert events == [ExtensionTold("_x/y", {})]
    assert peer.heard == []
    with pytest.raises(RuntimeError):
        peer.client.prompt("more")


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.open("/w"),
        lambda client: client.prompt("x"),
        lambda client: client.set("session/set_mode", {}),
    ],
)
def test_the_order_of_calls_is_held(call: Callable[[ClientConnection], None]) -> None:
    """What the state does not allow is a mistake of the driver's, and sends nothing."""
    client = ClientConnection()

    with pytest.raises(RuntimeError):
        call(client)

    assert client.data_to_send() == b""
