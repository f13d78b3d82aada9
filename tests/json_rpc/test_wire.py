"""How bytes become JSON-RPC messages."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.json_rpc import wire
from sortie.json_rpc.wire import (
    BadRequest,
    Incoming,
    Junk,
    MessageReader,
    RpcError,
    RpcNotification,
    RpcRequest,
    RpcResult,
)
from sortie.lines import LINE_LIMIT, LineTooLong

ASKED = b'{"jsonrpc":"2.0","id":0,"method":"m","params":{"a":1}}'


def read(data: bytes, limit: int = LINE_LIMIT) -> list[Incoming]:
    """Return what a whole stream holds."""
    reader = MessageReader(limit)
    return [*reader.feed(data), *reader.close()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (ASKED, RpcRequest(0, "m", {"a": 1})),
        (ASKED + b"\r", RpcRequest(0, "m", {"a": 1})),
        (b'{"id":null,"method":"m"}', RpcRequest(None, "m", {})),
        (b'{"id":"0","method":"m","params":[1]}', RpcRequest("0", "m", {})),
        (b'{"method":"m","params":{}}', RpcNotification("m", {})),
        (b'{"id":{},"method":"m"}', BadRequest()),
        (b'{"id":true,"method":"m"}', BadRequest()),
        (b'{"id":NaN,"method":"m"}', BadRequest()),
        (b'{"id":7,"result":null}', RpcResult(7, None)),
        (b'{"id":7}', RpcResult(7, None)),
        (b'{"id":7,"error":{"code":-32000,"message":"no"}}', RpcError(7, -32000, "no")),
        (b'{"id":7,"error":{"code":"x","data":[1]}}', RpcError(7, 0, "", [1])),
        (b'{"id":[7],"result":1}', Junk('{"id":[7],"result":1}')),
        (b"npm warn old", Junk("npm warn old")),
        (b"\xff\xfe", Junk("��")),
        (b"7", Junk("7")),
        (b"[" * 100_000, Junk("[" * 200)),
        (b'{"id":' + b"9" * 5000 + b"}", Junk(('{"id":' + "9" * 5000)[:200])),
    ],
)
def test_a_line_is_one_message(line: bytes, message: Incoming) -> None:
    """Each shape is told apart, and what is none of them is junk."""
    assert read(line + b"\n") == [message]


def test_a_batch_is_its_members() -> None:
    """An array holds messages, and maybe something else."""
    assert read(b"[" + ASKED + b",5]\n") == [
        RpcRequest(0, "m", {"a": 1}),
        Junk(f"[{ASKED.decode()},5]"),
    ]


def test_empty_lines_are_nothing() -> None:
    """Between messages there may be blank ones; a last line needs no end."""
    assert read(b"\n \r\n" + ASKED) == [RpcRequest(0, "m", {"a": 1})]


def test_a_line_ends_with_a_line_feed_alone() -> None:
    """Other characters at which Python would split are part of a line."""
    text = "a\u2028b\x85c\x0bd"

    (message,) = read(json.dumps({"method": text}, ensure_ascii=False).encode() + b"\n")

    assert message == RpcNotification(text, {})


@given(st.lists(st.binary(max_size=20) | st.just(ASKED + b"\n"), max_size=12), st.randoms())
def test_the_chunks_make_no_difference(parts: list[bytes], random: object) -> None:
    """The same messages come of a stream, however it is cut, also with a small limit."""
    data = b"".join(parts)
    for limit in (LINE_LIMIT, 30):
        reader, found = MessageReader(limit), list[Incoming]()
        for cut in range(0, len(data), 7):
            found += reader.feed(data[cut : cut + 7])

        assert [*found, *reader.close()] == read(data, limit)


def test_a_long_line_is_dropped_and_told() -> None:
    """It is not held, it is told where it passes the limit, once, and the next line is read."""
    tracemalloc.start()
    reader = MessageReader(1000)

    within = reader.feed(b"x" * 1000)
    beyond = reader.feed(b"x")
    found = [each for _ in range(5000) for each in reader.feed(b"x" * 1000)]
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (within, beyond, found) == ([], [LineTooLong(1000)], [])
    assert held < 100_000
    assert reader.feed(b"y\n" + ASKED + b"\n") == [RpcRequest(0, "m", {"a": 1})]


def test_an_id_goes_back_as_it_came() -> None:
    """Also where it is no text that could be encoded."""
    for number in (0, "0", None, 1.5, "\ud800", "ü"):
        sent = wire.result(number, {})
        assert (sent.count(b"\n"), json.loads(sent)["id"]) == (1, number)
