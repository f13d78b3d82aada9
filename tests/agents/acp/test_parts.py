"""The pure parts of the adapter: rules, paths, usage, limits, verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from sortie.acp.client import ClientConnection
from sortie.acp.events import PermissionRequested, SessionUpdated
from sortie.agents.acp.conversations import CONVERSATIONS_REMEMBERED, Conversations
from sortie.agents.acp.permissions import decide, paths_of
from sortie.agents.acp.reader import ReaderContext, UpdateReader
from sortie.agents.acp.settings import AcpSettings, warn
from sortie.agents.acp.tools import CALLS_AT_ONCE, AcpToolCalls
from sortie.agents.acp.usage import NO_COST, UsageReader
from sortie.agents.acp.verdict import TurnEvidence
from sortie.agents.permissions import PermissionRules, is_inside
from sortie.json_rpc.events import RequestDeclined
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    Notification,
    PermissionAsked,
    ToolEnded,
    ToolStarted,
    Usage,
)
from tests.acp.hostile import lines, proceed
from tests.fuzz import for_a_while

NOW = datetime(2026, 11, 22, 22, 30, tzinfo=UTC)


def option(kind: str) -> dict[str, str]:
    return {"optionId": f"id of {kind}", "kind": kind}


EVERY = tuple(map(option, ("reject_always", "allow_always", "reject_once", "allow_once")))


# Permissions


@pytest.mark.parametrize(
    ("offered", "ruling", "chosen"),
    [
        (EVERY, "allow", "id of allow_once"),
        (EVERY, "deny", "id of reject_once"),
        ((option("allow_always"), option("reject_once")), "allow", "id of allow_always"),
        ((option("allow_always"), option("reject_always")), "deny", "id of reject_always"),
        ((option("reject_once"),), "allow", None),
        ((option("allow_once"),), "deny", None),
        (({"optionId": 7, "kind": "allow_once"}, {"kind": "allow_once"}), "allow", None),
        ((), "allow", None),
    ],
)
def test_an_option_is_chosen_by_its_kind(
    offered: tuple[Mapping[str, Any], ...], ruling: Any, chosen: str | None
) -> None:
    """Not by its place or name; once rather than always; none where none fits."""
    rules = PermissionRules(inside={"default": ruling})

    answer = decide("edit", outside=False, options=offered, rules=rules)

    assert (answer.option_id, answer.allowed) == (chosen, ruling == "allow" and chosen is not None)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("/w", True),
        ("/w/a", True),
        ("a/../b", True),
        ("/w/../w/a", True),
        ("/w2/a", False),
        ("/w/../etc", False),
        ("..", False),
        ("~/a", False),
        ("~root/a", False),
        ("/", False),
    ],
)
def test_inside_is_what_is_written(path: str, inside: bool) -> None:
    """Dots are resolved, a common beginning is not enough."""
    assert is_inside(path, "/w") is inside
    assert is_inside(path, "/") is not path.startswith("~")


def test_paths_come_from_wherever_a_call_names_them() -> None:
    """Locations, diffs, and the known keys of its input; nothing else of that."""
    call = {
        "locations": [{"path": "/1"}, {"path": 7}, "x"],
        "content": [{"type": "diff", "path": "file:///2%20a"}],
        "rawInput": {
            "file_path": "/3",
            "filePath": "/4",
            "paths": ["/5", {}],
            "content": "/no",
            "cwd": 5,
        },
    }

    assert list(paths_of(call)) == ["/1", "/2 a", "/3", "/4", "/5"]


def test_one_path_outside_is_enough_wherever_it_stands() -> None:
    """Also behind more paths than are shown, and in an earlier message of the call."""
    calls = AcpToolCalls("x", "/w")
    many = [{"path": f"/w/{n}"} for n in range(100)]

    known, _ = calls.take({"toolCallId": "t", "locations": [*many, {"path": "/etc/passwd"}]})
    calls.take({"toolCallId": "t", "locations": [{"path": "/w/a"}]})

    assert known.outside


def test_a_mode_that_asks_nothing_beside_rules_that_deny_is_warned_of() -> None:
    """The rules would deny nothing in it; no agent is run."""
    denying = PermissionRules(inside={"default": "allow", "edit": "deny"})
    trusting = PermissionRules(inside={"default": "allow"})

    warned = warn(AcpSettings(permissions=denying, mode="yolo"))

    assert [key for key, _ in warned] == ["acp.mode"]
    assert not warn(AcpSettings(permissions=denying, mode="plan"))
    assert not warn(AcpSettings(permissions=trusting, mode="yolo"))


# Tools


def test_a_tool_is_told_once() -> None:
    """However often it is told of, also after its end; a flood of them has a bound."""
    calls, events = AcpToolCalls("x", "/w"), []

    for status in ("pending", "in_progress", "completed", "completed", "pending"):
        events += calls.take({"toolCallId": "t", "status": status, "kind": "new"})[1]
    for number in range(2 * CALLS_AT_ONCE):
        events += calls.take({"toolCallId": str(number)})[1]
    events += calls.close(failed=False)

    assert events[:2] == [ToolStarted(id="t", name="other", kind="other"), ToolEnded(id="t")]
    assert len(events) == 2 * CALLS_AT_ONCE


# Usage


def test_sums_of_a_process_are_taken_apart() -> None:
    """Also where a turn between was not told, and where they began anew."""
    reader = UsageReader("Copilot")

    told = [
        used
        for i, o in ((100, 10), (300, 15), (50, 5))
        for used in reader.turn({"usage": {"inputTokens": i, "outputTokens": o}})
    ]

    assert told == [
        Usage(input_tokens=100, output_tokens=10),
        Usage(input_tokens=200, output_tokens=5),
        Usage(input_tokens=50, output_tokens=5),
    ]


@pytest.mark.parametrize(
    ("names", "model"), [((), None), (("pro",), "pro"), (("pro", "flash"), None)]
)
def test_tokens_of_two_models_together_are_nobodys(names: Sequence[str], model: str | None) -> None:
    """Where an agent names several models and counts for all at once, none is charged for all."""
    counts = {"inputTokens": 5, "outputTokens": 1}
    named = {"quota": {"model_usage": [{"model": name} for name in names]}}

    told = UsageReader("@agentclientprotocol/claude-agent-acp").turn(
        {"usage": counts, "_meta": named}
    )

    assert told == [Usage(input_tokens=5, output_tokens=1, model=model)]


def paid(reader: UsageReader, amount: object, currency: object = "USD") -> float | None:
    used = reader.update({"cost": {"amount": amount, "currency": currency}})
    return None if used is None else used.cost


def test_the_cost_of_a_conversation_is_taken_apart() -> None:
    """A sum that is less began anew; without a beginning the first one is not counted."""
    new, old = UsageReader("x"), UsageReader("x")
    new.cost = NO_COST

    assert [paid(new, amount) for amount in (1.0, 1.5, 0.25)] == [1.0, 0.5, 0.25]
    assert [paid(old, amount) for amount in (1.0, 1.5)] == [None, 0.5]
    assert [paid(new, a) for a in ("1", float("nan"), -1, True)] == [None] * 4


def test_a_conversation_is_remembered_for_a_while() -> None:
    """What it cost, for a run that goes on with it; the oldest are forgotten."""
    conversations = Conversations(lambda: 0.0)

    assert conversations.opened("a", resumed=False) == NO_COST
    conversations.spent("a", ("USD", 2.0))
    assert conversations.opened("a", resumed=True) == ("USD", 2.0)
    assert conversations.opened("b", resumed=True) is None
    for number in range(CONVERSATIONS_REMEMBERED):
        conversations.opened(str(number), resumed=False)
    assert conversations.opened("a", resumed=True) is None


def test_gemini_has_to_wait_for_a_minute() -> None:
    """Before that it would lose what was said, also in a session that another daemon has begun;
    others need not wait."""
    now = 100.0
    conversations = Conversations(lambda: now)

    now = 110.0
    conversations.opened("s", resumed=False)
    now = 130.0
    assert conversations.wait_before("gemini-cli", "s") == 40.0
    assert conversations.wait_before("gemini-cli", "of an earlier daemon") == 30.0
    assert conversations.wait_before("Copilot", "s") == 0.0
    now = 171.0
    assert conversations.wait_before("gemini-cli", "s") == 0.0


# Verdicts


@pytest.mark.parametrize(
    ("agent", "pieces", "tokens", "good"),
    [
        ("OpenCode", [], False, True),
        ("somebody", [], False, False),
        ("somebody", [], True, True),
        ("somebody", ["done"], False, True),
        ("somebody", ["Info: started"], False, False),
        ("somebody", ["done", "Error: it broke"], True, False),
        ("Copilot", ["Error: it broke"], True, False),
        ("gemini-cli", ["done", "Error: is the word it found"], False, True),
    ],
)
def test_an_end_needs_proof(agent: str, pieces: list[str], tokens: bool, good: bool) -> None:
    """``end_turn`` is one only for agents that say it of good turns alone."""
    evidence = TurnEvidence(agent)
    for piece in pieces:
        evidence.text(piece)

    assert (evidence.failure("end_turn", used_tokens=tokens) is None) is good


@pytest.mark.parametrize(("piece", "good"), [("Info: cancelled by user", False), ("so", True)])
def test_what_an_agent_says_of_itself_is_no_going_on(piece: str, good: bool) -> None:
    """After a denial the model has to have said something, and not its program."""
    evidence = TurnEvidence("Copilot")
    evidence.denied("execute: rm")
    evidence.tool_ended(failed=True)
    evidence.text(piece)

    assert (evidence.failure("end_turn", used_tokens=True) is None) is good


# Questions that come too late


def test_a_tool_of_which_a_declined_question_is_the_first_word_has_begun() -> None:
    """In a cancel a question is answered with no; its tool is told as begun, and then as ended."""
    settings = AcpSettings(permissions=PermissionRules(inside={"default": "allow"}))
    reader = UpdateReader(
        ReaderContext(agent="x", workspace="/w", settings=settings, now=lambda: NOW, redacted=str)
    )
    reader.begin()
    call = {"toolCallId": "t1", "title": "touch made", "kind": "execute"}

    heard = [
        *reader.take(RequestDeclined("session/request_permission", {"toolCall": call})),
        *reader.take(SessionUpdated("tool_call_update", {**call, "status": "failed"})),
    ]

    assert [type(event) for event in heard] == [ToolStarted, PermissionAsked, ToolEnded]


# Hostile agents


def _hold(chunks: list[bytes]) -> None:
    """Nothing raises, texts are bounded and clean, and each tool that began ends."""
    settings = AcpSettings(permissions=PermissionRules(inside={"default": "allow"}))
    client, begun, ended = ClientConnection(line_limit=5000), list[str](), list[str]()
    reader = UpdateReader(
        ReaderContext(
            agent="Copilot",
            workspace="/w",
            settings=settings,
            now=lambda: NOW,
            redacted=lambda text: text.replace("secret", "***"),
        )
    )
    heard: list[AgentEvent] = []
    for greeting in (b"", b'{"id":1,"result":{"protocolVersion":1}}\n', b'{"id":2,"result":{'):
        if greeting.endswith(b"{"):
            greeting += b'"sessionId":"s"}}\n'
        client.feed(greeting)
        proceed(client)
    reader.begin()
    for chunk in chunks:
        for event in client.feed(chunk):
            if isinstance(event, PermissionRequested):
                answer, told = reader.permit(event)
                client.answer_permission(event.id, answer.option_id)
            else:
                told = reader.take(event)
            heard += told
    heard += reader.end()
    for each in heard:
        if isinstance(each, Notification):
            assert 0 < len(each.message) <= NOTIFICATION_LIMIT
        begun += [each.id] if isinstance(each, ToolStarted) else []
        ended += [each.id] if isinstance(each, ToolEnded) else []
        for text in _texts(asdict(each) | {"id": ""}):
            text.encode()  # there is no half of a surrogate pair in it
    assert sorted(begun) == sorted(ended)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


@given(st.lists(lines, max_size=30))
def test_no_agent_breaks_the_reader(chunks: list[bytes]) -> None:
    """See ``_hold``, for a few examples."""
    _hold(chunks)


@pytest.mark.full
@pytest.mark.timeout(0)
def test_no_agent_breaks_the_reader_for_a_while() -> None:
    """See ``_hold``, for as long as was asked for."""
    for_a_while(st.lists(lines, max_size=30), _hold)
