"""Sessions with the scripted Codex: one process, many turns, and whatever can go wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.agents import McpServer
from sortie.agents.codex.settings import CodexSettings, read_only
from sortie.agents.permissions import PermissionRules
from sortie.model import AgentError, ErrorKind, TurnOutcome
from sortie.model.turns import (
    AnswerGiven,
    Launched,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    Usage,
)
from sortie.transports.local import become_subreaper
from tests.agents.codex.staged import KEY, CodexStage, Heard
from tests.agents.kiro.simulated import is_alive

TRUSTING = PermissionRules(inside={"default": "allow"})


@pytest.fixture
def stage(tmp_path: Path) -> CodexStage:
    become_subreaper()
    return CodexStage(tmp_path)


async def refusal(
    stage: CodexStage, *words: str, settings: CodexSettings | None = None
) -> AgentError:
    """Return why there is no session."""
    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        async with stage.session(*words, settings=settings):
            pass
    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    return error


async def test_one_process_serves_all_turns(stage: CodexStage) -> None:
    """The thread goes on in it; warnings of its start are told with the first."""
    first, second = await stage.turns(["one", "two"])

    assert [result.outcome for result, _ in (first, second)] == [TurnOutcome.COMPLETED] * 2
    assert first[1].pid == second[1].pid
    warning = "[warning] Model metadata for `scripted` not found."
    assert [heard.messages for _, heard in (first, second)] == [[warning, "prompt 1"], ["prompt 2"]]


async def test_tokens_of_a_turn_are_those_it_has_used(stage: CodexStage) -> None:
    """Codex tells sums of a thread; subagents have sums of their own."""
    (_, first), (_, second) = await stage.turns(["one", "codex: subagent"])

    counts = [
        [(u.input_tokens, u.output_tokens, u.cached_tokens) for u in h.used]
        for h in (first, second)
    ]
    assert counts == [[(100, 20, 10)], [(1000, 50, 0), (100, 20, 10)]]
    (used,) = first.used
    assert used == Usage(
        input_tokens=100,
        output_tokens=20,
        cached_tokens=10,
        cache_write_tokens=0,
        model="scripted",
        context_share=0.12,
    )
    assert not any("aside" in message for message in second.messages)


async def test_a_thread_is_gone_on_with_and_counts_what_is_new(stage: CodexStage) -> None:
    """What it had used before was counted by the run before."""
    with trio.fail_after(60):
        async with stage.session() as session:
            await session.run_turn("PONG", Heard())
            known = session.id
        heard = Heard()
        async with stage.session(resume=known) as session:
            result = await session.run_turn("codex: recall", heard)

    assert (session.id, result.outcome) == (known, TurnOutcome.COMPLETED)
    assert any("PONG" in message for message in heard.messages)
    assert [u.input_tokens for u in heard.used] == [100]
    assert not any(isinstance(event, SessionKnown) for event in heard.events)


async def test_a_thread_that_is_gone_begins_anew(stage: CodexStage) -> None:
    """It is told, and the new id is known from the start."""
    heard = Heard()
    with trio.fail_after(60):
        async with stage.session(resume="gone") as session:
            await session.run_turn("hello", heard)

    assert session.id != "gone"
    assert any("no rollout found for thread id gone" in message for message in heard.messages)


async def test_a_thread_that_another_process_just_wrote_is_tried_again(stage: CodexStage) -> None:
    """The process of the run before may just have ended."""
    with trio.fail_after(60):
        async with stage.session() as session:
            await session.run_turn("hello", Heard())
            known = session.id
        async with stage.session("--resume", "writer", resume=known) as session:
            assert session.id == known


async def test_a_process_that_ended_between_turns_is_replaced(stage: CodexStage) -> None:
    """The next turn goes on with the thread, in a new process."""
    with trio.fail_after(60):
        async with stage.session() as session:
            first, second = Heard(), Heard()
            await session.run_turn("codex: die later", first)
            while is_alive(first.pid):
                await trio.sleep(0.01)
            result = await session.run_turn("codex: recall", second)

    assert result.outcome is TurnOutcome.COMPLETED
    assert second.of(Launched)[-1].process.pid != first.pid
    assert any("die later" in message for message in second.messages)


async def test_a_command_does_not_outlive_its_turn(stage: CodexStage) -> None:
    """Codex lets it go on when a turn is interrupted, so that its process is ended, too."""
    with trio.fail_after(60):
        async with stage.session() as session:
            first, second = Heard(), Heard()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run_turn, "codex: shell echo $$ > pid; sleep 600", first)
                pid = stage.workspace / "pid"
                while not pid.exists() or not pid.read_text().strip():
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
            assert not is_alive(int(pid.read_text()))
            result = await session.run_turn("codex: recall", second)

    assert result.outcome is TurnOutcome.COMPLETED
    assert [event.failed for event in first.events if isinstance(event, ToolEnded)] == [True]
    assert first.pid != second.pid


# Permissions


async def test_a_subagent_asks_by_the_same_rules(stage: CodexStage) -> None:
    """Its tools are no tools of the turn."""
    settings = CodexSettings(permissions=TRUSTING)

    result, heard = await stage.turn("codex: subagent", settings=settings)

    assert result.outcome is TurnOutcome.COMPLETED
    (asked,) = heard.of(PermissionAsked)
    assert asked.question.endswith("/workspace/aside")
    assert asked.answer == "allowed by permissions.inside for edit"
    assert heard.of(ToolStarted) == []


@pytest.mark.parametrize(
    ("prompt", "inside"),
    [("codex: command {} touch made", "execute"), ("codex: patch add {}/made", "edit")],
)
async def test_by_default_nothing_is_allowed(stage: CodexStage, prompt: str, inside: str) -> None:
    """The turn goes on, and the transcript has what was asked and why it was denied."""
    result, heard = await stage.turn(prompt.format(stage.workspace))

    (asked,) = heard.of(PermissionAsked)
    (ended,) = heard.of(ToolEnded)
    assert result.outcome is TurnOutcome.COMPLETED
    assert asked.answer == f"denied by permissions.inside for {inside}"
    assert "made" in asked.question
    assert (ended.failed, ended.error) == (True, "it was declined")
    assert not (stage.workspace / "made").exists()


async def test_rules_allow_inside_of_the_workspace(stage: CodexStage) -> None:
    """A command with its directory, and a change with all its paths."""
    settings = CodexSettings(permissions=TRUSTING)
    place = stage.workspace
    prompts = [f"codex: command {place} touch one; echo done", f"codex: patch add {place}/two"]

    ended = await stage.turns(prompts, settings=settings)

    assert (place / "one").exists()
    assert (place / "two").read_text() == "made\n"
    answers = [event.answer for _, heard in ended for event in heard.of(PermissionAsked)]
    assert answers == [f"allowed by permissions.inside for {kind}" for kind in ("execute", "edit")]
    tools = [event for _, heard in ended for event in heard.of(ToolEnded)]
    assert [(t.failed, t.output, t.duration) for t in tools] == [
        (False, "done\n", 0.007),
        (False, None, None),
    ]


async def test_rules_hold_outside_of_the_workspace(stage: CodexStage, tmp_path: Path) -> None:
    """What is allowed inside is not allowed there."""
    settings = CodexSettings(permissions=TRUSTING)
    prompts = [
        f"codex: command {tmp_path} touch {tmp_path}/one",
        f"codex: patch add {tmp_path}/two",
        f"codex: patch add {stage.workspace}/../three",
    ]

    ended = await stage.turns(prompts, settings=settings)

    answers = [event.answer for _, heard in ended for event in heard.of(PermissionAsked)]
    assert answers == [
        f"denied by permissions.outside for {k}" for k in ("execute", "edit", "edit")
    ]
    assert not {"one", "two", "three"} & {path.name for path in tmp_path.iterdir()}


PERMISSIONS = "item/permissions/requestApproval"
MCP = "mcpServer/elicitation/request"
CALL = {"_meta": {"codex_approval_kind": "mcp_tool_call"}, "serverName": "s", "message": "Allow?"}
NETWORK = {"permissions": {"network": {"enabled": True}, "fileSystem": None}}
WRITING = {"permissions": {"network": None, "fileSystem": {"read": None, "write": ["/w/x"]}}}


@pytest.mark.parametrize(
    ("method", "params", "answer", "reason"),
    [
        (PERMISSIONS, NETWORK, {"permissions": {}, "scope": "turn"}, "outside for fetch"),
        (PERMISSIONS, WRITING, {"permissions": {}, "scope": "turn"}, "outside for edit"),
        (PERMISSIONS, {"permissions": {}}, {"permissions": {}, "scope": "turn"}, "is not known"),
        (MCP, CALL, {"_meta": None, "action": "accept", "content": {}}, "inside for other"),
        (MCP, {"mode": "form"}, {"_meta": None, "action": "decline", "content": None}, "not known"),
        ("item/tool/requestUserInput", {"questions": [{"question": "?"}]}, {"answers": {}}, "not"),
        ("item/fileChange/requestApproval", {"itemId": "x"}, {"decision": "decline"}, "not known"),
        (
            "item/commandExecution/requestApproval",
            {"networkApprovalContext": {"host": "example.com"}, "command": "x", "cwd": "/"},
            {"decision": "decline"},
            "outside for fetch",
        ),
    ],
)
async def test_other_questions_are_answered(
    stage: CodexStage, method: str, params: object, answer: object, reason: str
) -> None:
    """By the same rules, or denied where they name nothing that rules are about."""
    settings = CodexSettings(permissions=TRUSTING)

    _, heard = await stage.turn(f"codex: wish {method} {json.dumps(params)}", settings=settings)

    (asked,) = heard.of(PermissionAsked)
    assert reason in asked.answer
    assert json.loads(heard.of(AnswerGiven)[-1].text) == answer


# How turns fail


async def test_a_usage_limit_says_when_it_ends(stage: CodexStage) -> None:
    """By the window that is used up; without one its end is not known."""
    (known, _), (unknown, _) = await stage.turns(["codex: limit 4102444800", "codex: say x"])
    without, _ = await stage.turn("codex: limit")

    assert known.error_kind is without.error_kind is ErrorKind.USAGE_LIMIT
    assert known.resets_at == datetime(2100, 1, 1, tzinfo=UTC)
    assert without.resets_at is None
    assert unknown.outcome is TurnOutcome.COMPLETED


@pytest.mark.parametrize(
    ("info", "kind", "words"),
    [
        ('"internalServerError"', ErrorKind.TURN_FAILED, "(internalServerError)"),
        ('{"httpConnectionFailed":{"httpStatusCode":401}}', ErrorKind.RESPONSE_ERROR, "log in"),
        ('"unauthorized"', ErrorKind.RESPONSE_ERROR, "CODEX_API_KEY"),
        ('{"responseTooManyFailedAttempts":{"httpStatusCode":429}}', ErrorKind.TURN_FAILED, "429"),
        ("[1]", ErrorKind.TURN_FAILED, "429"),
    ],
)
async def test_a_failed_turn_has_its_cause(
    stage: CodexStage, info: str, kind: ErrorKind, words: str
) -> None:
    """In Codex's words, with the name that it gives the error."""
    result, _ = await stage.turn(f"codex: fail {info} status 429")

    assert (result.outcome, result.error_kind) == (TurnOutcome.FAILED, kind)
    assert words in (result.message or "")


async def test_a_secret_leaves_nowhere(stage: CodexStage) -> None:
    """Neither in what is said nor in tools, stderr and the failure."""
    result, heard = await stage.turn("codex: secret")

    assert result.error_kind is ErrorKind.TURN_FAILED
    assert KEY not in f"{result} {heard.events}"
    assert heard.of(ToolStarted)
    assert heard.of(ToolEnded)


# How a session begins


async def test_codex_without_a_login_is_not_prompted(stage: CodexStage) -> None:
    """It would try for long, and fail each turn."""
    error = await refusal(stage, "--login", "none")

    assert error.kind is ErrorKind.RESPONSE_ERROR
    assert "codex login" in str(error)


async def test_codex_that_says_nothing_is_given_up(stage: CodexStage) -> None:
    """Within the time that the block allows."""
    settings = CodexSettings(start_timeout_ms=1000)
    stage.params = replace(stage.params, read_timeout=0.1)

    with trio.fail_after(60), pytest.raises(ExceptionGroup) as caught:
        async with stage.session("--mute", settings=settings):
            pass

    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    assert error.kind is ErrorKind.RESPONSE_TIMEOUT
    assert "codex.start_timeout_ms" in str(error)


async def test_the_sandbox_is_set_with_the_turn_alone(stage: CodexStage) -> None:
    """A thread that begins with it would have Codex trust what the repository configures."""
    arguments, thread, turn = await stage.shown(
        CodexSettings(model="m", effort="high", network=True)
    )

    assert arguments == []
    assert thread == {
        "cwd": str(stage.workspace),
        "sandbox": "read-only",
        "approvalPolicy": "on-request",
        "approvalsReviewer": "user",
        "config": {"model_reasoning_effort": "high"},
        "model": "m",
    }
    assert turn["sandboxPolicy"] == {
        "type": "workspaceWrite",
        "writableRoots": [f"{stage.workspace}/.git"],
        "networkAccess": True,
        "excludeTmpdirEnvVar": False,
        "excludeSlashTmp": False,
    }


async def test_a_reading_session_can_only_read(stage: CodexStage) -> None:
    """Whatever the block allows."""
    block = CodexSettings(
        sandbox="danger-full-access", permissions=TRUSTING, approval_policy="never", network=True
    )
    _, thread, turn = await stage.shown(read_only(block))
    _, heard = await stage.turn(
        f"codex: command {stage.workspace} touch made", settings=read_only(block)
    )

    assert turn["sandboxPolicy"] == {"type": "readOnly", "networkAccess": False}
    assert thread["sandbox"] == "read-only"
    assert [event.answer for event in heard.of(PermissionAsked)] == [
        "denied by permissions.inside for execute"
    ]


async def test_a_key_is_named_and_never_told(stage: CodexStage) -> None:
    """Codex reads it from its environment, where it is told to."""
    env = {"CODEX_API_KEY": "sk-first-key", "OPENAI_API_KEY": "sk-second-key"}

    arguments, thread, _ = await stage.shown(env=env | {"OPENAI_BASE_URL": "http://proxy/v1"})

    assert arguments == [
        "-c",
        'model_providers.sortie={name="OpenAI by key",base_url="http://proxy/v1",'
        'wire_api="responses",env_key="CODEX_API_KEY"}',
        "-c",
        'model_provider="sortie"',
    ]
    assert "sk-" not in f"{arguments} {thread}"


async def test_a_provider_of_its_own_goes_before_a_key(stage: CodexStage) -> None:
    """So that a login is used although a key is in the environment."""
    env = {"OPENAI_API_KEY": "sk-second-key"}

    arguments, _, _ = await stage.shown(CodexSettings(provider="openai"), env=env)

    assert arguments == ["-c", 'model_provider="openai"']


async def test_a_password_in_an_address_is_refused(stage: CodexStage) -> None:
    """All users of the host could read it in the list of processes."""
    env = {"OPENAI_API_KEY": "sk-key-of-mine", "OPENAI_BASE_URL": "https://me:secret@proxy/v1"}

    with trio.fail_after(60), pytest.raises(AgentError, match="OPENAI_BASE_URL") as caught:
        async with stage.session(env=env):
            pass

    assert caught.value.kind is ErrorKind.ADAPTER_SETTINGS
    assert "secret" not in str(caught.value)


async def test_a_server_of_tools_is_handed_over(stage: CodexStage) -> None:
    """Its tools need no further permission."""
    server = McpServer(name="sortie", argv=("/bin/tools", "x"), env={"A": "b"})

    _, thread, _ = await stage.shown(server=server)

    assert thread["config"]["mcp_servers"] == {
        "sortie": {
            "command": "/bin/tools",
            "args": ["x"],
            "env": {"A": "b"},
            "default_tools_approval_mode": "approve",
        }
    }
