"""Whatever Claude Code, or what stands in its place, prints: nothing breaks reader or worker."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.claude_code.reader import ClaudeReader
from sortie.agents.claude_code.tokens import TokenLedger
from sortie.agents.output import AgentOutput
from sortie.lines import RawLineSplitter
from sortie.model import ErrorKind
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    ModelAnswered,
    Notification,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.worker.agent_values import checked_session_id
from sortie.worker.usage import UsageIncrements
from tests.agents.claude_code.reading import ID, STREAMS, Clock
from tests.fuzz import for_a_while

PARTS: list[dict[str, Any]] = [
    {
        "type": "stream_event",
        "event": {"type": "message_start", "message": {"id": "m", "model": "x", "usage": {}}},
        "parent_tool_use_id": None,
    },
    {
        "type": "stream_event",
        "event": {"type": "message_delta", "usage": {"output_tokens": 33}},
        "api_message_id": "m",
    },
    {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": 1795389721},
    },
    {
        "type": "assistant",
        "message": {"id": "e", "model": "<synthetic>", "content": [{"type": "text", "text": "x"}]},
        "error": "rate_limit",
        "timestamp": "2026-11-22T22:22:04.481Z",
        "api_error_params": {"rate_limit_info": {"resetsAt": 1795389721}},
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": True,
        "result": "You've hit your weekly limit · resets Nov 24, 9:52am (Asia/Kolkata)",
    },
]


def _trimmed(value: Any) -> Any:
    """Return an event without long lists of words, which only make examples large."""
    if isinstance(value, dict):
        return {key: _trimmed(item) for key, item in value.items()}
    return [_trimmed(item) for item in value[:2]] if isinstance(value, list) else value


RECORDED = [
    _trimmed(json.loads(line))
    for path in sorted(STREAMS.glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
] + PARTS

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["m", "toolu_1", ID, "\ud800", "\x1b[31m", "x" * 3000, "success", "tool_use"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container in a value with each key in it."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    """An event of the real program in which some values are others, or gone."""
    event: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(RECORDED))))
    for _ in range(draw(st.integers(0, 3))):
        found = list(places(event))
        if not found:
            break
        container, key = found[draw(st.integers(0, len(found) - 1))]
        if isinstance(container, dict) and draw(st.booleans()):
            del container[key]
        else:
            container[key] = draw(VALUES)
    return event


LINES = st.one_of(
    events().map(json.dumps),
    events().map(lambda event: json.dumps(event, ensure_ascii=False)),
    VALUES.map(json.dumps),
    st.dictionaries(st.just("type"), VALUES).map(json.dumps),
    st.text(max_size=20),
).map(lambda text: text.encode(errors="replace").replace(b"\n", b" "))
STREAMS_OF_LINES = st.lists(st.one_of(LINES, st.binary(max_size=30)), max_size=12)


def read(data: bytes, size: int) -> tuple[list[AgentEvent], ClaudeReader]:
    """Return what is told of a stream that comes in chunks of a size."""
    reader = ClaudeReader(ID, TokenLedger(), Clock(), resume=False)
    output = AgentOutput(reader, ("very-secret",), RawLineSplitter())
    told = [it for at in range(0, len(data), size) for it in output.take(1, data[at : at + size])]
    return [*told, *output.close()], reader


CHECKS: dict[type, Callable[[Any], bool]] = {
    Notification: lambda it: 0 < len(it.message) <= NOTIFICATION_LIMIT,
    ModelAnswered: lambda it: math.isfinite(it.seconds) and it.seconds >= 0,
    ToolEnded: lambda it: it.duration >= 0 and (it.error is None or len(it.error) <= 2048),
    SessionKnown: lambda it: checked_session_id(it.session_id) == it.session_id,
}


def _hold(lines: Sequence[bytes]) -> None:
    """Every event can be taken, each tool that began has ended, and there is an outcome."""
    told, reader = read(b"\n".join(lines), 1 << 20)

    increments, open_tools = UsageIncrements(), set[str]()
    for event in told:
        assert CHECKS.get(type(event), lambda _: True)(event), event
        match event:
            case Usage():
                increments.of(event)
            case ToolStarted(id=call):
                assert call not in open_tools
                open_tools.add(call)
            case ToolEnded(id=call):
                open_tools.remove(call)
    assert not open_tools
    for status in (0, 1, 255):
        failure = reader.failure(status)
        assert failure is not None or status == 0
        if failure is not None:
            assert failure.message
            assert failure.resets_at is None or failure.kind is ErrorKind.USAGE_LIMIT


@given(STREAMS_OF_LINES)
def test_nothing_breaks_it(lines: list[bytes]) -> None:
    """See ``_hold``."""
    _hold(lines)


@pytest.mark.full
@pytest.mark.timeout(0)
def test_nothing_breaks_it_for_a_while() -> None:
    """See ``_hold``, for as long as it was asked for."""
    for_a_while(STREAMS_OF_LINES, _hold)


@given(STREAMS_OF_LINES, st.integers(1, 50))
def test_the_chunks_make_no_difference(lines: list[bytes], size: int) -> None:
    """The events are the same, however a stream is cut."""
    data = b"\n".join(lines)

    assert repr(read(data, size)[0]) == repr(read(data, 1 << 20)[0])
