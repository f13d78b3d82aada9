"""What Kiro's record of a turn becomes as events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.kiro.traced_session import TOLD_TOOLS, events_of
from sortie.kiro.conversations import (
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
)
from sortie.kiro.conversations.history_v1 import read_document
from sortie.kiro.conversations.latest import conversation_from
from sortie.kiro.conversations.records import ConversationError, ConversationSummary
from sortie.kiro.conversations.turn import Addition, Position, added_since
from sortie.model import TEXT_LIMIT
from sortie.model.secrets import redactor
from sortie.model.turns import AgentEvent, ToolEnded, ToolStarted, TurnTraced, TurnUntraced, Usage
from tests.kiro.conversations.written import document, entry, results, said, uses

SUMMARY = ConversationSummary(engine="v1", id="c-1", directory="/w", place="/db")


def told(*records: Record, usages: tuple[KiroUsage, ...] = ()) -> list[AgentEvent]:
    return events_of(Addition(records=records, usages=usages), str, with_credits=True)


def use(name: str = "fs_write", at: int | None = None, **given: object) -> ToolUse:
    return ToolUse(id="t", name=name, input=given, at=at)


@pytest.mark.parametrize(
    ("used", "kind", "places", "about"),
    [
        (use(command="create", path="a.py"), "edit", ("a.py",), None),
        (use("write", command="strReplace", path="a.py"), "edit", ("a.py",), None),
        (use(command="view", path="a.py"), "read", ("a.py",), None),
        (use(command="create"), "read", (), None),
        (use("fs_read", operations=[{"path": "a"}, {"path": "b"}, 7]), "read", ("a", "b"), None),
        (use("execute_bash", command="rm -rf x"), "execute", (), "rm -rf x"),
        (use("grep", pattern="def x", path="src"), "search", ("src",), "def x"),
        (use("@mcp/search", path=7, file_path="c"), None, ("c",), None),
    ],
)
def test_a_tool_has_the_kind_of_what_it_does(
    used: ToolUse, kind: str | None, places: tuple[str, ...], about: str | None
) -> None:
    """A tool that can write has only read where it names no file to write; what another one was
    given is told."""
    began = ToolStarted(id="t", name=used.name, kind=kind, locations=places, about=about)
    assert told(used)[0] == began


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (
            ToolResult(tool_use_id="t", text="ok", succeeded=True, at=3500),
            ToolEnded(id="t", duration=1.5, output="ok"),
        ),
        (
            ToolResult(tool_use_id="t", text="ok", at=1000),
            ToolEnded(id="t", duration=0.0, output="ok"),
        ),
        (
            ToolResult(tool_use_id="t", text="no", succeeded=False),
            ToolEnded(id="t", failed=True, duration=0.0, error="no"),
        ),
        (
            ToolUsesCancelled(tool_use_ids=("t",)),
            ToolEnded(id="t", failed=True, duration=0.0, error="it was cancelled"),
        ),
        (
            ToolResult(tool_use_id="another", text=""),
            ToolEnded(
                id="t", failed=True, duration=0.0, error="the turn ended before the tool did"
            ),
        ),
    ],
)
def test_a_tool_ends_as_its_result_says(outcome: Record, end: ToolEnded) -> None:
    """Where none is told it has not succeeded; its time is that between Kiro's own stamps."""
    assert told(use(at=2000), outcome)[1] == end


def test_what_was_used_and_answered_comes_last() -> None:
    """The share of the context is that of the last answer, and the last model counts."""
    events = told(
        ModelAnswer(text="first", model="small", context_share=10.0),
        ModelAnswer(text="", model="large", context_share=25.0),
        ModelAnswer(text="", context_share=1e9),
        usages=(KiroUsage(credits=0.25, model="other"), KiroUsage(credits=0.5)),
    )

    assert events == [
        Usage(credits=0.75, context_share=0.25),
        TurnTraced(model="large", answer="first"),
    ]


def test_of_too_many_tools_the_first_are_told() -> None:
    """And that there were more."""
    events = told(*(ToolUse(id=str(n), name="x", input={}) for n in range(TOLD_TOOLS + 1)))

    assert len(events) == 2 * TOLD_TOOLS + 2
    assert events[-2] == TurnUntraced(reason="only 1000 of 1001 tools are told")


def test_no_half_of_a_secret_stays_where_an_answer_is_cut() -> None:
    """Of a long answer the middle is left out; both edges may fall into a secret."""
    secret = "sk-5f1c0de-5f1c0de"
    half, hidden = TEXT_LIMIT // 2, redactor([secret])
    for before in (*range(half - 60, half + 20), *range(TEXT_LIMIT - 20, TEXT_LIMIT + 20)):
        answer = ModelAnswer(text="x" * before + secret + "y" * (3 * half - before % 7))

        events = events_of(Addition(records=(answer,), usages=()), hidden, with_credits=True)

        (traced,) = [event for event in events if isinstance(event, TurnTraced)]
        assert traced.answer is not None
        assert not any(secret[i : i + 4] in traced.answer for i in range(len(secret) - 4))


def test_no_secret_and_no_flood_leaves() -> None:
    """Texts of any length are cut, and a secret is replaced before that."""
    flood = "sk-secret " * 10_000
    records = (
        ToolUse(id=flood, name=flood, input={"path": "sk-secret"}),
        ToolResult(tool_use_id=flood, text=flood, succeeded=True),
        ModelAnswer(text=flood, model=flood),
    )

    addition = Addition(records=records, usages=())
    events = events_of(addition, redactor(["sk-secret"]), with_credits=False)

    assert len(repr(events)) < 12_000
    assert "sk-secret" not in repr([replaced(event) for event in events])


def replaced(event: AgentEvent) -> object:
    """Return an event without its id, which nobody is shown."""
    match event:
        case ToolStarted():
            return event.name, event.locations
        case ToolEnded():
            return event.error
        case _:
            return event


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def mutated(draw: Callable[[st.SearchStrategy[Any]], Any], value: Any) -> Any:
    """Return a document in which some value is another one, of whatever type."""
    if draw(st.integers(0, 12)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {key: mutated(draw, each) for key, each in value.items()}
    if isinstance(value, list):
        return [mutated(draw, each) for each in value]
    return value


WHOLE = document(
    entry({"Prompt": {"prompt": "do"}}, uses(("t-1", "fs_write", {"path": "a"}), text="I")),
    entry(results(("t-1", {"Text": "done"}, "Success")), said("done")),
    spent=(0.5,),
)


@given(st.data())
def test_no_document_breaks_the_reading(data: st.DataObject) -> None:
    """Whatever an agent was made to write into its own store."""
    spoilt = mutated(data.draw, WHOLE)
    conversation = read_document(spoilt if isinstance(spoilt, dict) else {}, SUMMARY)
    events = events_of(added_since(conversation, None), str, with_credits=True)
    again = added_since(conversation, Position.after(conversation))

    assert isinstance(events[-1], TurnTraced)
    assert len(again.records) <= len(conversation.records)


@given(st.sampled_from(["v1", "v1-older", "v2", "v3"]), st.binary(), st.binary())
def test_no_bytes_break_the_reading(store: str, content: bytes, messages: bytes) -> None:
    """What is no conversation is refused as such."""
    with pytest.raises(ConversationError):
        conversation_from(store, "/db", "/w", b"[" + content, messages)
