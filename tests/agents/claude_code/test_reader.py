"""Single lines and what they tell; whole streams are in ``test_streams``."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sortie.agents.exits import Failure
from sortie.model import ErrorKind
from sortie.model.turns import (
    AgentEvent,
    AnswerGiven,
    ModelAnswered,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    Usage,
)
from tests.agents.claude_code.reading import ID, Reading, recorded

USAGE = {"input_tokens": 100, "output_tokens": 1}
LIMIT_TEXT = "You've hit your 5-hour limit · resets 11:22pm (UTC)"


def line(kind: str, **values: Any) -> str:
    return json.dumps({"type": kind} | values)


def assistant(*blocks: dict[str, Any], usage: object = USAGE, **values: Any) -> str:
    message = {"id": "m1", "model": "claude-x", "content": list(blocks), "usage": usage}
    return line("assistant", message=message, parent_tool_use_id=None, **values)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def refusal(said: str, **values: Any) -> list[str]:
    """Return what is printed where the API refuses: a message of nobody's, and a result."""
    message = {"id": "e", "model": "<synthetic>", "content": [text(said)], "usage": {}}
    stamp = {"timestamp": "2026-11-22T22:22:04.481Z", "is_api_error_message": True}
    result = {
        "subtype": "success",
        "is_error": True,
        "result": said,
        "terminal_reason": "api_error",
    }
    return [line("assistant", message=message, **stamp | values), line("result", **result)]


def events(*lines: str) -> list[AgentEvent]:
    return Reading().lines(*lines).events


def messages(*lines: str) -> list[str]:
    return [event.message for event in events(*lines) if isinstance(event, Notification)]


def test_an_init_begins_the_session() -> None:
    """Its id is told where it is not the one that was asked for."""
    init = {"subtype": "init", "model": "claude-x", "claude_code_version": "2.1.328"}

    assert messages(line("system", session_id=ID, **init)) == ["session began: claude-x, 2.1.328"]
    told = Reading().lines(line("system", session_id="other", **init))
    assert told.events[1:] == [TurnTraced(model="claude-x"), SessionKnown(session_id="other")]
    assert told.reader.session_id == "other"


@pytest.mark.parametrize("session_id", ["", None, 7, "a\nb", "x" * 1000, ID])
def test_an_id_that_is_none_changes_nothing(session_id: object) -> None:
    """Half an id would name another conversation."""
    reading = Reading().lines(line("system", subtype="init", session_id=session_id))

    assert not any(isinstance(event, SessionKnown) for event in reading.events)
    assert reading.reader.session_id == ID


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            line("system", subtype="api_retry", attempt=1, max_retries=10, error="overloaded"),
            "API retry 1 of 10: overloaded",
        ),
        (
            line("system", subtype="api_retry", retry_delay_ms=10**400, error_status=None),
            "API retry ? of ?: no reason given",
        ),
        (
            line("system", subtype="model_fallback", message="sonnet for opus"),
            "model_fallback: sonnet for opus",
        ),
        (line("system", subtype="compact_boundary"), "compact_boundary"),
        (line("system"), "system"),
        (line("prompt_suggestion", text="more?"), "prompt_suggestion: more?"),
        (line("something_new"), "something_new"),
        (assistant(text("two\n words")), "two words"),
        (
            assistant(
                text("a"), {"type": "tool_use", "name": "Read", "input": {"file_path": "/f"}}
            ),
            "a Read: /f",
        ),
        (line(""), "an event without a name"),
        (line("\x1b[0m"), "an event without a name"),
        ("not JSON", "malformed: not JSON"),
        ("[1]", "malformed: [1]"),
        ('{"no": "type"}', 'malformed: {"no": "type"}'),
        ('{"type": 5}', 'malformed: {"type": 5}'),
        ("[" * 100_000, "malformed: " + "[" * 489),
        ("9" * 10_000, "malformed: " + "9" * 489),
    ],
)
def test_what_is_said_of_a_line(event: str, message: str) -> None:
    """In a line of at most 500 characters, also of kinds that nobody has heard of."""
    assert messages(event) == [message]


@pytest.mark.parametrize(
    "event",
    [
        "",
        "   ",
        line("stream_event", event={"type": "content_block_delta"}),
        line("stream_event", event={"type": "message_start"}),
        line("stream_event", event={"type": "message_delta", "usage": {"output_tokens": 9}}),
        line("stream_event"),
        line("system", subtype="status", status="requesting"),
        line("system", subtype="thinking_tokens"),
        line("tool_progress", tool_name="Bash"),
        line("rate_limit_event", rate_limit_info={"status": "allowed"}),
        line("user", message={"content": "hello"}),
        line("assistant", message={"content": [{"type": "thinking", "thinking": "hm"}]}),
    ],
)
def test_what_is_only_a_sign_of_life(event: str) -> None:
    """It tells nothing, and is heard all the same."""
    assert events(event) == []


def test_partial_messages_complete_the_count_of_a_message() -> None:
    """The end of a message tells its output, with or without its id beside it."""
    start = {"type": "message_start", "message": {"id": "m1"}}
    end = {"type": "message_delta", "usage": {"output_tokens": 44}}

    def outputs(*lines: str) -> list[int | None]:
        return [event.output_tokens for event in events(*lines) if isinstance(event, Usage)]

    assert outputs(
        line("stream_event", event=start), assistant(text("a")), line("stream_event", event=end)
    ) == [1, 44]
    named = line("stream_event", event=end, api_message_id="m1")
    assert outputs(assistant(text("a")), named) == [1, 44]
    inside = line("stream_event", event=end, parent_tool_use_id="t1")
    assert outputs(line("stream_event", event=start), assistant(text("a")), inside) == [1]


def test_the_time_of_each_answer() -> None:
    """From the beginning, and from each message to the model, to the first words of an answer."""
    reading = Reading()
    reading.lines(line("system", subtype="init", session_id=ID), "{}", assistant(text("a")))
    reading.lines(assistant(text("b")), line("user", message={}), "{}", "{}")
    reading.lines(assistant(text("c")), line("result", duration_api_ms=9000))

    told = [event for event in reading.events if isinstance(event, ModelAnswered)]

    assert told == [
        ModelAnswered(seconds=2.0, model="claude-x"),
        ModelAnswered(seconds=3.0, model="claude-x"),
    ]


def test_without_times_of_answers_the_result_tells_them() -> None:
    """Once, and only where nothing was measured."""
    assert events(line("result", duration_api_ms=9000)) == [ModelAnswered(seconds=9.0)]
    assert events(line("result", duration_api_ms=0)) == []


def test_refusals_are_told_once() -> None:
    """When they happen, or at the end where they were not told before."""
    denied = line(
        "system", subtype="permission_denied", tool_use_id="1", tool_name="Bash", message="no"
    )
    denials = [
        {"tool_use_id": "1", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        {"tool_use_id": "2", "tool_name": "Write", "tool_input": {"file_path": "/f"}},
    ]

    told = events(denied, denied, line("result", permission_denials=denials))

    answer = "refused: nobody was there to allow it"
    assert told == [
        PermissionAsked(question="Bash: no", answer=answer),
        PermissionAsked(question="Write: /f", answer=answer),
    ]


def test_a_tool_that_the_end_cuts_off_has_ended() -> None:
    """Its error says why; the tokens of the turn count."""
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}

    told = Reading().lines(assistant(use)).close().events

    assert told[-2:] == [
        ToolStarted(id="t", name="Bash", kind="execute", about="make"),
        ToolEnded(id="t", failed=True, duration=1.0, error="the turn ended before the tool did"),
    ]


RESULT = {"subtype": "success", "is_error": False, "result": "done"}


@pytest.mark.parametrize(
    ("result", "status", "kind"),
    [
        (RESULT, 0, None),
        (None, 0, "turn_failed"),
        (RESULT | {"is_error": True}, 0, "turn_failed"),
        (RESULT | {"subtype": "error_max_turns"}, 0, "turn_failed"),
        ({"subtype": "success"}, 0, "turn_failed"),
        (RESULT | {"is_error": "false"}, 0, "turn_failed"),
        ({}, 0, "turn_failed"),
        (RESULT | {"is_error": True}, 1, "turn_failed"),
        (RESULT, 1, "port_exit"),
        (None, 1, "port_exit"),
        (None, 255, "port_exit"),
    ],
)
def test_the_outcome_by_result_and_exit(
    result: dict[str, Any] | None, status: int, kind: str | None
) -> None:
    """A result that says it failed decides; then the exit status does."""
    reading = Reading().lines(*([] if result is None else [line("result", **result)])).close()

    failure = reading.reader.failure(status)

    assert (None if failure is None else failure.kind) == kind


def test_without_a_result_the_model_must_have_answered() -> None:
    """Exit 0 is what a program that is no agent has, too, and one that the API refused."""
    answered = Reading().lines(assistant(text("a"))).close().reader
    refused = Reading().lines(assistant(text("a")), refusal("API Error")[0]).close().reader

    assert answered.failure(0) is None
    assert refused.failure(0) == Reading().lines("noise").close().reader.failure(0)
    assert refused.failure(0) == Failure(
        ErrorKind.TURN_FAILED,
        "claude-code exited with 0, and neither an answer nor a result was seen",
    )


def test_the_last_result_counts() -> None:
    """A process may give several: work in the background goes on after the first."""
    reading = Reading().lines(line("result", **RESULT), line("result", **RESULT | {"is_error": 1}))

    assert reading.reader.failure(0) is not None
    assert reading.lines(line("result", **RESULT)).reader.failure(0) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"errors": ["a", "b"]}, "a; b"),
        ({"errors": [{"message": "c"}], "result": "d"}, "c"),
        ({"result": "two\n\x1b[31mlines\x1b[0m"}, "two lines"),
        ({"subtype": "error_new"}, "it ended with 'error_new'"),
        ({"errors": [None, 5], "subtype": "x"}, "it ended with 'x'"),
    ],
)
def test_what_a_failure_says(values: dict[str, Any], message: str) -> None:
    """The errors, else the result, else the kind of end."""
    failure = Reading().lines(line("result", is_error=True, **values)).reader.failure(1)

    assert failure is not None
    assert failure.message == f"claude-code reported a failure: {message}"


def test_an_exit_says_what_stood_on_stderr() -> None:
    """Bad options and a missing file are told there and nowhere else."""
    reading = Reading().stderr("Error: Invalid MCP configuration:\nMCP config file not found: /x\n")

    assert reading.close().reader.failure(1) == Failure(
        ErrorKind.PORT_EXIT,
        "claude-code exited with a non-zero status: 1 (MCP config file not found: /x)",
    )
    assert Reading().reader.failure(255) == Failure(
        ErrorKind.PORT_EXIT,
        "claude-code exited with a non-zero status: 255"
        " (where it runs over SSH, the connection failed)",
    )


INFO = {"status": "rejected", "resetsAt": 1795389721, "rateLimitType": "five_hour"}
RESETS_AT = datetime(2026, 11, 22, 23, 22, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lines", "resets_at"),
    [
        (
            refusal(
                LIMIT_TEXT,
                api_error="usage_limit_reached",
                api_error_params={"rate_limit_info": INFO},
            ),
            RESETS_AT,
        ),
        ([line("rate_limit_event", rate_limit_info=INFO), *refusal(LIMIT_TEXT)], RESETS_AT),
        (
            [
                line("rate_limit_event", rate_limit_info=INFO | {"resetsAt": 1700000000}),
                *refusal(LIMIT_TEXT, api_error_params={"rate_limit_info": INFO}),
            ],
            RESETS_AT,
        ),
        (refusal(LIMIT_TEXT), datetime(2026, 11, 22, 23, 22, tzinfo=UTC)),
        (refusal("Claude AI usage limit reached|1795389721"), RESETS_AT),
        (refusal("Credit balance is too low", error="billing_error"), None),
        (refusal("API Error: Request rejected (429)", error="rate_limit"), None),
        (
            refusal(
                "API Error: 400 You have reached your specified API usage limits. You will regain"
                " access on 2026-12-01 at 00:00 UTC."
            ),
            datetime(2026, 12, 1, tzinfo=UTC),
        ),
        (refusal(LIMIT_TEXT, timestamp="yesterday"), None),
        (refusal(LIMIT_TEXT, timestamp="2026-11-22T22:22:04"), None),
    ],
)
def test_a_usage_limit_says_until_when(lines: list[str], resets_at: datetime | None) -> None:
    """By its numbers, else by its words, else nobody knows."""
    failure = Reading().lines(*lines).close().reader.failure(1)

    assert failure is not None
    assert failure.kind is ErrorKind.USAGE_LIMIT
    assert failure.resets_at == resets_at


@pytest.mark.parametrize(
    "lines",
    [
        # The model may talk about limits.
        [
            assistant(text("The usage limit reached|1795389721 is a bug.")),
            line(
                "result", subtype="error_max_turns", is_error=True, errors=["5-hour limit reached"]
            ),
        ],
        # A limit that was waited out is none.
        [
            line("rate_limit_event", rate_limit_info=INFO),
            *refusal("API Error: Repeated 529 Overloaded errors.", error="server_error"),
        ],
        # What was refused before was answered later.
        [*refusal(LIMIT_TEXT, error="rate_limit")[:1], assistant(text("a")), *refusal("x")[1:]],
    ],
)
def test_other_failures_are_no_usage_limit(lines: list[str]) -> None:
    """Only what the API refuses at the end for a limit is one."""
    failure = Reading().lines(*lines).close().reader.failure(1)

    assert failure is not None
    assert failure.kind is ErrorKind.TURN_FAILED


def test_a_turn_without_a_result_is_counted_apart_from_the_next() -> None:
    """What is told of the next turn is about that one alone."""
    killed = Reading().lines(assistant(text("a"))).close()
    models = {"claude-x": {"inputTokens": 7, "outputTokens": 3}}
    result = line("result", **RESULT, model_usage_since_last_result=models)

    told = Reading(ledger=killed.ledger).lines(result).events

    assert [(it.input_tokens, it.output_tokens) for it in told if isinstance(it, Usage)] == [
        (107, 4)
    ]


def test_how_full_the_context_is() -> None:
    """By the last message of the conversation itself; a subagent has a context of its own."""
    inner = {"id": "m2", "model": "claude-x", "content": [], "usage": {"input_tokens": 900}}
    result = line("result", **RESULT, modelUsage={"claude-x": {"contextWindow": 1010}})

    told = events(
        assistant(text("a")),
        line("assistant", message=inner, parent_tool_use_id="t1"),
        result,
    )

    assert told[-1] == Usage(context_share=0.1, cumulative=True)


def test_an_old_version_counts_for_its_process_alone() -> None:
    """Of versions before 2.1 the models of a result are those of the turn."""

    def costs(version: str, **result: Any) -> list[float | None]:
        init = line("system", subtype="init", session_id=ID, claude_code_version=version)
        told = events(init, line("result", **RESULT | result))
        return [event.cost for event in told if isinstance(event, Usage)]

    models = {"m": {"inputTokens": 1, "outputTokens": 1, "costUSD": 0.5}}

    assert costs("2.0.77", modelUsage=models) == [None, 0.5]
    assert costs("2.1.328", modelUsage=models) == []
    assert costs("2.1.328", modelUsage=models, model_usage_since_last_result=models) == [None, 0.5]


def test_a_conversation_that_went_on_is_not_lost() -> None:
    """A turn in which something was said is not run a second time."""
    errors = [f"No conversation found with session ID: {ID}"]
    lost = line("result", subtype="error_during_execution", is_error=True, errors=errors)

    assert Reading(resume=True).lines(lost).reader.conversation_lost
    assert not Reading(resume=True).lines(assistant(text("a")), lost).reader.conversation_lost
    assert not Reading(resume=False).lines(lost).reader.conversation_lost


def test_an_id_in_use_is_known_by_stderr() -> None:
    """Only a turn that was to begin with it is one whose id was taken."""
    said = f"Error: Session ID {ID} is already in use.\n"

    assert Reading().stderr(said).reader.id_taken
    assert not Reading(resume=True).stderr(said).reader.id_taken
    assert not Reading().stderr("Error: another\n").reader.id_taken
    assert not recorded("text", resume=True).reader.conversation_lost


def test_the_model_is_the_one_that_answers() -> None:
    """After a fallback it is another than the session's; a subagent's is none of the run."""
    init = line("system", subtype="init", session_id=ID, model="large")
    messages = [
        line("assistant", message={"id": name, "model": model, "usage": USAGE}, **where)
        for name, model, where in (
            ("m1", "large", {}),
            ("m2", "small", {"parent_tool_use_id": "t1"}),
            ("m3", "other", {}),
            ("m4", "other", {}),
            ("m5", "<synthetic>", {}),
        )
    ]

    told = events(init, *messages)

    models = [event.model for event in told if isinstance(event, TurnTraced)]
    assert models == ["large", "other"]


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([assistant(text("I am")), assistant(text("done."))], "I am\ndone."),
        ([assistant(text("I am")), line("result", result="All.\n", is_error=False)], "All."),
        ([assistant(text("I am")), line("result", result="no", is_error=True)], "I am"),
        ([assistant(text("I look.")), assistant({"type": "tool_use", "name": "Read"})], "I look."),
        (refusal("usage limit"), None),
        ([assistant(text(" \n"))], None),
        ([assistant(text("\x1b[31mred\x1b[0m"))], "red"),
    ],
)
def test_what_was_said_last_is_told_at_the_end(lines: list[str], answer: str | None) -> None:
    """That of a good result, or else the text of the last message that has one."""
    told = Reading().lines(*lines).close().events

    answers = [event.text for event in told if isinstance(event, AnswerGiven)]
    assert answers == ([] if answer is None else [answer])
