"""The client's state machine for Codex, step by step, and against what means no good."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.codex.approvals import APPROVALS
from sortie.codex.client import CodexConnection
from sortie.codex.events import ApprovalAsked, CodexEvent, ServerTold, TurnFinished
from sortie.json_rpc.connection import ConnectionState
from sortie.json_rpc.events import (
    Initialized,
    RequestAnswered,
    RequestDeclined,
    RequestFailed,
    SessionOpened,
)

COMMAND = "item/commandExecution/requestApproval"
DECLINED = {"decision": "decline"}
POLICY = {"type": "dangerFullAccess"}


class CodexPeer:
    """A connection, and Codex at its other end as a test plays it."""

    def __init__(self) -> None:
        self.client = CodexConnection()

    def tell(self, **message: Any) -> list[CodexEvent]:
        """Have Codex say something."""
        return self.client.feed(json.dumps(message).encode() + b"\n")

    def ended(self, turn: object = "u", thread: str = "t") -> list[CodexEvent]:
        """Have Codex end a turn."""
        params = {"threadId": thread, "turn": {"id": turn, "status": "completed"}}
        return self.tell(method="turn/completed", params=params)

    @property
    def sent(self) -> list[dict[str, Any]]:
        """What the client has sent since the last look."""
        return [json.loads(line) for line in self.client.data_to_send().splitlines()]

    def open(self) -> None:
        """Greet, and begin a thread."""
        self.client.initialize("n", "t", "v")
        self.tell(id=1, result={"userAgent": "x"})
        self.client.open({"cwd": "/w"})
        self.tell(id=2, result={"thread": {"id": "t"}})
        self.client.data_to_send()

    def begin(self) -> None:
        """Have a turn under way whose id is known."""
        self.open()
        self.client.start_turn("do it", POLICY)
        self.tell(id=3, result={"turn": {"id": "u"}})
        self.client.data_to_send()


@pytest.fixture
def peer() -> CodexPeer:
    return CodexPeer()


def test_a_thread_is_opened_and_a_turn_is_run(peer: CodexPeer) -> None:
    """Each step is asked for, and answered."""
    peer.client.initialize("n", "t", "v")
    greeted = peer.tell(id=1, result={"userAgent": "x"})
    hello = peer.sent
    peer.client.read_account()
    account = peer.tell(id=2, result={"account": None})
    peer.client.open({"cwd": "/w"})
    opened = peer.tell(id=3, result={"thread": {"id": "t"}})
    peer.client.start_turn("do it", POLICY)
    begun = peer.tell(id=4, result={"turn": {"id": "u"}})
    (*_, turn) = peer.sent

    assert [message["method"] for message in hello] == ["initialize", "initialized"]
    assert (greeted, account) == (
        [Initialized({"userAgent": "x"})],
        [RequestAnswered("account/read", {"account": None})],
    )
    assert [type(event) for event in opened] == [SessionOpened]
    assert turn["params"]["sandboxPolicy"] == POLICY
    assert begun == []
    assert peer.ended() == [TurnFinished("completed", {"id": "u", "status": "completed"})]
    assert peer.client.state is ConnectionState.IDLE


def test_a_thread_is_gone_on_with_without_its_history(peer: CodexPeer) -> None:
    """One that cannot be leaves the connection able to begin another."""
    peer.client.initialize("n", "t", "v")
    peer.tell(id=1, result={})
    peer.client.open({"cwd": "/w"}, "old")
    (*_, asked) = peer.sent

    refused = peer.tell(id=2, error={"code": -32600, "message": "no rollout found"})

    assert asked["method"] == "thread/resume"
    assert asked["params"] == {"threadId": "old", "excludeTurns": True, "cwd": "/w"}
    assert refused == [RequestFailed("thread/resume", -32600, "no rollout found")]
    assert peer.client.state is ConnectionState.READY


@pytest.mark.parametrize("thread", [{"id": "another"}, {}, None])
def test_another_thread_is_none(peer: CodexPeer, thread: object) -> None:
    """Nothing goes on in a thread that was not asked for."""
    peer.client.initialize("n", "t", "v")
    peer.tell(id=1, result={})
    peer.client.open({}, "old")

    (failed,) = peer.tell(id=2, result={"thread": thread})

    assert isinstance(failed, RequestFailed)
    assert peer.client.state is ConnectionState.READY


def test_a_turn_that_does_not_begin_is_over(peer: CodexPeer) -> None:
    """Its error is its end."""
    peer.open()
    peer.client.start_turn("x", POLICY)

    failed = peer.tell(id=3, error={"code": -32600, "message": "thread not found"})

    assert failed == [RequestFailed("turn/start", -32600, "thread not found")]
    assert peer.client.state is ConnectionState.IDLE


def test_only_the_end_of_its_own_turn_ends_it(peer: CodexPeer) -> None:
    """Neither that of an earlier turn nor that of another thread."""
    peer.begin()

    others = [*peer.ended("earlier"), *peer.ended("u", "subagent"), *peer.ended(7)]

    assert all(isinstance(event, ServerTold) for event in others)
    assert peer.client.state is ConnectionState.TURN
    assert [type(event) for event in peer.ended()] == [TurnFinished]


def test_an_end_before_the_answer_counts(peer: CodexPeer) -> None:
    """The answer only tells then which turn it was."""
    peer.open()
    peer.client.start_turn("x", POLICY)

    early = peer.ended()
    (late,) = peer.tell(id=3, result={"turn": {"id": "u"}})

    assert [type(event) for event in early] == [ServerTold]
    assert isinstance(late, TurnFinished)


def test_what_is_told_of_another_thread_is_not_ours(peer: CodexPeer) -> None:
    """That which names no thread is."""
    peer.begin()

    told = [
        *peer.tell(method="item/started", params={"threadId": "t"}),
        *peer.tell(method="item/started", params={"threadId": "subagent"}),
        *peer.tell(method="thread/started", params={"thread": {"id": "subagent"}}),
        *peer.tell(method="account/updated", params={}),
    ]

    assert [event.ours for event in told if isinstance(event, ServerTold)] == [
        True,
        False,
        False,
        True,
    ]


def test_what_is_told_of_an_earlier_turn_is_not_of_this_one(peer: CodexPeer) -> None:
    """As the sum of tokens of a thread that is gone on with, which may come late."""
    peer.open()
    peer.client.start_turn("x", POLICY)
    told = {"threadId": "t", "turnId": "earlier"}

    early = peer.tell(method="thread/tokenUsage/updated", params=told)
    peer.tell(id=3, result={"turn": {"id": "u"}})
    late = peer.tell(method="thread/tokenUsage/updated", params=told)
    now = peer.tell(method="item/started", params={"threadId": "t", "turnId": "u"})
    aside = peer.tell(method="item/started", params={"threadId": "subagent", "turnId": "v"})

    events = [*early, *late, *now, *aside]
    assert [event.in_turn for event in events if isinstance(event, ServerTold)] == [
        False,
        False,
        True,
        True,
    ]


# Approvals


def test_an_approval_waits_for_its_answer(peer: CodexPeer) -> None:
    """It is answered once."""
    peer.begin()

    asked = peer.tell(id=0, method=COMMAND, params={"itemId": "i"})
    peer.client.answer(0, {"decision": "accept"})
    peer.client.answer(0, {"decision": "accept"})

    assert asked == [ApprovalAsked(0, COMMAND, {"itemId": "i"})]
    assert peer.sent == [{"jsonrpc": "2.0", "id": 0, "result": {"decision": "accept"}}]


def test_an_interrupt_denies_what_is_open_and_what_comes(peer: CodexPeer) -> None:
    """The turn is to end, and nothing more is allowed in it."""
    peer.begin()
    peer.tell(id=0, method=COMMAND, params={})

    peer.client.cancel()
    declined = peer.tell(id=1, method=COMMAND, params={})
    sent = peer.sent

    assert declined == [RequestDeclined(COMMAND, {})]
    assert [message.get("result") for message in sent if "result" in message] == [DECLINED] * 2
    assert [m["params"] for m in sent if "method" in m] == [{"threadId": "t", "turnId": "u"}]
    assert [type(event) for event in peer.ended()] == [TurnFinished]


def test_a_turn_whose_id_is_not_known_yet_is_interrupted_as_soon_as_it_is(peer: CodexPeer) -> None:
    """Codex wants the id, which comes with its answer or with the beginning."""
    peer.open()
    peer.client.start_turn("x", POLICY)
    peer.client.data_to_send()

    peer.client.cancel()
    before = peer.sent
    started = {"threadId": "t", "turn": {"id": "u"}}
    peer.tell(method="turn/started", params=started)
    peer.tell(id=3, result={"turn": {"id": "u"}})

    assert before == []
    assert [message["method"] for message in peer.sent] == ["turn/interrupt"]


@pytest.mark.parametrize("method", sorted(APPROVALS))
def test_outside_of_a_turn_all_is_denied(peer: CodexPeer, method: str) -> None:
    """Each in the words that Codex understands."""
    peer.open()

    declined = peer.tell(id=5, method=method, params={"x": 1})
    (answer,) = peer.sent

    assert declined == [RequestDeclined(method, {"x": 1})]
    assert answer["id"] == 5
    assert answer["result"] in (
        DECLINED,
        {"permissions": {}, "scope": "turn"},
        {"action": "decline", "content": None, "_meta": None},
        {"answers": {}},
    )


def test_what_is_not_offered_is_an_error(peer: CodexPeer) -> None:
    """A client that is silent would be waited for."""
    peer.begin()

    declined = peer.tell(id="a", method="item/tool/call", params={})

    assert declined == [RequestDeclined("item/tool/call", {})]
    assert peer.sent[0]["error"]["code"] == -32601


def test_nothing_is_asked_in_a_state_that_does_not_allow_it(peer: CodexPeer) -> None:
    """It is a mistake of the driver's."""
    with pytest.raises(RuntimeError, match="needs the state IDLE, not NEW"):
        peer.client.start_turn("x", POLICY)


def test_the_end_of_the_stream_is_the_end(peer: CodexPeer) -> None:
    """A last line without its end counts."""
    peer.begin()
    line = {"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u"}}}
    peer.client.feed(json.dumps(line).encode())

    assert [type(event) for event in peer.client.end()] == [TurnFinished]
    assert peer.client.state is ConnectionState.DEAD


# What means no good

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["t", "u", "", "completed", "failed", "\ud800", "x"])
)
_keys = st.sampled_from(
    ["thread", "turn", "id", "threadId", "turnId", "status", "item", "error", "userAgent", "type"]
)
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=5),
    max_leaves=15,
)
_ids = st.sampled_from([0, 1, 2, 3, 4, "1", None, 1.0, True, "\ud800", -1])
_methods = st.sampled_from(
    [COMMAND, "item/tool/call", "turn/completed", "turn/started", "item/started", "", "x"]
)
_messages = (
    st.builds(lambda m, p: {"method": m, "params": p}, _methods, _values)
    | st.builds(lambda m, p, i: {"method": m, "params": p, "id": i}, _methods, _values, _ids)
    | st.builds(lambda i, r: {"id": i, "result": r}, _ids, _values)
    | st.builds(lambda i, e: {"id": i, "error": e}, _ids, _values)
    | _values
)
_lines = st.builds(lambda m: json.dumps(m).encode() + b"\n", _messages) | st.binary(max_size=30)
_steps = st.lists(_lines | st.sampled_from(["proceed", "interrupt", "answer"]), max_size=40)


def _proceed(client: CodexConnection) -> None:
    match client.state:
        case ConnectionState.NEW:
            client.initialize("n", "t", "v")
        case ConnectionState.READY:
            client.open({}, None)
        case ConnectionState.IDLE:
            client.start_turn("x", POLICY)
        case _:
            pass


def _truth(client: CodexConnection) -> dict[str, Any]:
    """Return an answer that brings a connection on."""
    thread, turn = {"id": client.session_id or "t"}, {"id": "u"}
    return {"thread": thread, "turn": turn, "userAgent": "x"}


@given(_steps, st.booleans())
def test_nothing_that_comes_breaks_it(steps: list[bytes | str], helped: bool) -> None:
    """Each request of Codex's is answered at most once, and what is sent is JSON."""
    client = CodexConnection(line_limit=2000)
    sent: list[dict[str, Any]] = []
    asked = 0
    for step in steps:
        match step:
            case bytes():
                asked += sum(isinstance(e, ApprovalAsked) for e in client.feed(step))
            case "proceed":
                _proceed(client)
            case "interrupt":
                client.cancel()
            case _ if helped:
                numbers = [m["id"] for m in sent if "method" in m and "id" in m]
                answer = {"id": numbers[-1] if numbers else 1, "result": _truth(client)}
                client.feed(b"\n" + json.dumps(answer).encode() + b"\n")
            case _:
                client.answer(0, {"decision": "accept"})
        sent += [json.loads(line) for line in client.data_to_send().splitlines()]
    client.end()

    assert client.state is ConnectionState.DEAD
    accepted = [m for m in sent if m.get("result") == {"decision": "accept"}]
    assert len(accepted) <= asked
