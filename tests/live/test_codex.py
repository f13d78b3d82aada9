"""The real Codex, pinned and new: what its adapter relies on. Its model is scripted."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from msgspec.structs import replace

from sortie.agents import McpServer
from sortie.agents.codex.settings import CodexSettings, read_only
from sortie.agents.permissions import PermissionRules
from sortie.model import AgentError, ErrorKind, TurnOutcome
from sortie.model.asked_permissions import AskedPermissions
from sortie.model.questions import Question
from sortie.model.turns import PermissionAsked, ToolEnded, ToolStarted, Usage
from sortie.transports.local import become_subreaper
from tests.agents.codex.staged import Heard
from tests.agents.kiro.simulated import is_alive
from tests.live.codex import CODEX_KEY, SHELL, VERSIONS, RealCodex, codex_program
from tests.live.model_answers import Answer, ToolUse, tool
from tests.live.model_server import ModelServer, model_server

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

LIMIT = 200.0
TRUSTING = PermissionRules(inside={"default": "allow"})
DONE = Answer(text="All is done.")


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as models:
        yield models


@pytest.fixture(params=VERSIONS)
def codex(
    request: pytest.FixtureRequest, server: ModelServer, tmp_path: Path
) -> Iterator[RealCodex]:
    become_subreaper()
    program = codex_program(request.param)
    with TemporaryDirectory(dir="/var/tmp", ignore_cleanup_errors=True) as home:
        yield RealCodex(tmp_path, Path(home), program, server.url("codex"))


async def turn(
    codex: RealCodex, settings: CodexSettings | None = None, prompt: str = "go"
) -> tuple[object, Heard]:
    """Run one turn in a session of its own."""
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with codex.agent(settings).session(codex.params) as session:
            result = await session.run_turn(prompt, heard)
    return result, heard


def said_to_model(server: ModelServer) -> str:
    """Return all that tools have said to the model."""
    last = server.scripts["codex"].requests[-1].body["input"]
    return json.dumps([each for each in last if each["type"].endswith("output")])


async def test_it_commits_and_goes_on_in_the_next_run(
    codex: RealCodex, server: ModelServer
) -> None:
    """With the key of the environment, counting what each turn has used."""
    commit = "echo hi > made; git add made; git commit -qm first; git log --oneline"
    script = server.script("codex", tool(SHELL, "I work", cmd=commit), DONE, Answer(text="PONG"))
    first, second, third = Heard(), Heard(), Heard()

    with trio.fail_after(LIMIT):
        async with codex.agent().session(codex.params) as session:
            ended = [await session.run_turn("remember PING", first)]
            ended.append(await session.run_turn("again", second))
            (argv,) = [Path(f"/proc/{first.pid}/cmdline").read_text()]
        again = replace(codex.params, resume_session_id=session.id)
        async with codex.agent().session(again) as resumed:
            ended.append(await resumed.run_turn("what was it?", third))

    assert [result.outcome for result in ended] == [TurnOutcome.COMPLETED] * 3
    (used,) = first.of(ToolEnded)
    assert (used.failed, "first" in (used.output or "")) == (False, True)
    assert (codex.workspace / "made").read_text() == "hi\n"
    counts = [sum(u.input_tokens or 0 for u in heard.of(Usage)) for heard in (first, second, third)]
    assert counts == [200, 100, 100]
    assert resumed.id == session.id
    assert "remember PING" in json.dumps(script.requests[-1].body)
    assert {r.headers["authorization"] for r in script.requests} == {f"Bearer {CODEX_KEY}"}
    assert CODEX_KEY not in argv
    files = [path for path in codex.home.rglob("*") if path.is_file()]
    assert [path for path in files if CODEX_KEY.encode() in path.read_bytes()] == []


async def test_a_repository_configures_nothing(codex: RealCodex, server: ModelServer) -> None:
    """Neither servers that would start outside of the sandbox nor anything else."""
    evil = codex.home / "evil"
    (codex.workspace / ".codex").mkdir()
    (codex.workspace / ".codex" / "config.toml").write_text(
        f'[mcp_servers.evil]\ncommand = "/bin/sh"\nargs = ["-c", "touch {evil}; sleep 1"]\n'
    )
    server.script("codex", tool(SHELL, cmd="sleep 1; touch made"), DONE)

    result, _ = await turn(codex)

    assert getattr(result, "outcome", None) is TurnOutcome.COMPLETED
    assert (codex.workspace / "made").exists()
    assert not evil.exists()
    assert not (codex.home / ".codex" / "config.toml").exists()


async def test_an_interrupt_leaves_no_command(codex: RealCodex, server: ModelServer) -> None:
    """And the thread goes on afterwards, in a new process."""
    server.script("codex", tool(SHELL, cmd="echo $$ > pid; sleep 600"))
    first, second = Heard(), Heard()

    with trio.fail_after(LIMIT):
        async with codex.agent().session(codex.params) as session:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(session.run_turn, "remember PING", first)
                while not first.of(ToolStarted) or not (codex.workspace / "pid").exists():
                    await trio.sleep(0.05)
                nursery.cancel_scope.cancel()
            left = [p for p in _running() if "sleep 600" in p and str(codex.workspace) in p]
            server.script("codex", DONE)
            result = await session.run_turn("and now?", second)

    assert left == []
    assert not is_alive(first.pid)
    assert result.outcome is TurnOutcome.COMPLETED
    assert "remember PING" in json.dumps(server.scripts["codex"].requests[-1].body)


def _running() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_text().replace("\0", " ")
            found.append(f"{command} {os.readlink(path / 'cwd')}")
        except OSError:
            continue
    return found


@pytest.mark.parametrize("sign", ["KILL", "TERM"])
async def test_a_killed_process_is_replaced(
    codex: RealCodex, server: ModelServer, sign: str
) -> None:
    """The thread that it was in goes on."""
    server.script("codex", Answer(hang=600))
    first, second = Heard(), Heard()

    with trio.fail_after(LIMIT):
        async with codex.agent().session(codex.params) as session:

            async def kill() -> None:
                while not server.scripts["codex"].requests:
                    await trio.sleep(0.05)
                os.kill(first.pid, getattr(signal, f"SIG{sign}"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(kill)
                ended = await session.run_turn("remember PING", first)
            server.script("codex", DONE)
            result = await session.run_turn("and now?", second)

    assert ended.outcome is not TurnOutcome.COMPLETED
    assert result.outcome is TurnOutcome.COMPLETED
    assert "remember PING" in json.dumps(server.scripts["codex"].requests[-1].body)


async def test_it_ends_by_itself_when_it_is_left(codex: RealCodex, server: ModelServer) -> None:
    """The end of its input is enough: no signal is needed."""
    server.script("codex", DONE)
    status, program = codex.home / "status", codex.home / "program"
    program.write_text(f'#!/bin/sh\n{codex.program} "$@"\necho $? > {status}\n')
    program.chmod(0o755)
    codex.program = program

    await turn(codex)

    assert status.read_text() == "0\n"


# What it may do

ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "it is needed"}


@pytest.mark.parametrize("allowed", [False, True])
async def test_rules_answer_for_a_command(
    codex: RealCodex, server: ModelServer, allowed: bool
) -> None:
    """It runs outside of the sandbox, or the model is told that it was rejected."""
    server.script("codex", tool(SHELL, cmd=f"touch {codex.home}/made", **ESCALATED), DONE)
    rules = TRUSTING if allowed else PermissionRules()

    result, heard = await turn(codex, CodexSettings(model="gpt-5", permissions=rules))

    (asked,) = heard.of(PermissionAsked)
    verb = "allowed" if allowed else "denied"
    assert asked.answer == f"{verb} by permissions.inside for execute"
    assert (codex.home / "made").exists() is allowed
    assert ("rejected" in said_to_model(server)) is not allowed
    assert getattr(result, "outcome", None) is TurnOutcome.COMPLETED


async def test_people_are_asked_and_the_thread_goes_on(
    codex: RealCodex, server: ModelServer
) -> None:
    """The turn ends with the question; the next run may do it once, in the same thread."""
    asked: list[Question] = []
    wish = tool(SHELL, cmd=f"echo x >> {codex.home}/made", **ESCALATED)
    rules = PermissionRules(inside={"execute": "ask"}, outside={"execute": "ask"})
    settings = CodexSettings(model="gpt-5", permissions=rules)
    server.script("codex", wish, Answer(hang=600))
    codex.params = replace(codex.params, permissions=AskedPermissions(asked.append, (), None))
    with trio.fail_after(LIMIT):
        async with codex.agent(settings).session(codex.params) as session:
            result = await session.run_turn("remember PING", Heard())
    assert (result.outcome, (codex.home / "made").exists()) == (TurnOutcome.COMPLETED, False)
    (question,) = asked
    assert f"{codex.home}/made" in question.text

    script = server.script("codex", wish, wish, Answer(hang=600))
    permissions = AskedPermissions(asked.append, (), question.permission)
    codex.params = replace(codex.params, permissions=permissions, resume_session_id=session.id)
    heard = Heard()
    with trio.fail_after(LIMIT):
        async with codex.agent(settings).session(codex.params) as resumed:
            await resumed.run_turn("you may", heard)

    assert (resumed.id, (codex.home / "made").read_text()) == (session.id, "x\n")
    assert [one.permission for one in asked] == [question.permission] * 2
    assert [event.answer.partition(" ")[0] for event in heard.of(PermissionAsked)] == [
        "allowed",
        "denied",
    ]
    assert "remember PING" in json.dumps(script.requests[0].body)


async def test_rules_answer_for_a_patch(codex: RealCodex, server: ModelServer) -> None:
    """By the paths that it changes."""
    patch = f"*** Begin Patch\n*** Add File: {codex.home}/made\n+made\n*** End Patch"
    server.script("codex", tool(SHELL, cmd=f"apply_patch <<'EOF'\n{patch}\nEOF"), DONE)

    _, heard = await turn(codex, CodexSettings(model="gpt-5", permissions=TRUSTING))

    assert [event.answer for event in heard.of(PermissionAsked)] == [
        "denied by permissions.outside for edit"
    ]
    (ended,) = heard.of(ToolEnded)
    assert (ended.failed, ended.locations) == (True, (f"{codex.home}/made",))
    assert not (codex.home / "made").exists()


@pytest.mark.parametrize("sandbox", ["workspace-write", "reading", "without-git"])
async def test_the_sandbox_holds(codex: RealCodex, server: ModelServer, sandbox: str) -> None:
    """What a turn may write to is as the block says."""
    block = CodexSettings(model="gpt-5", write_git=sandbox != "without-git")
    settings = read_only(block) if sandbox == "reading" else block
    words = f"touch inside; touch .git/mark; touch {codex.home}/outside; sleep 1"
    server.script("codex", tool(SHELL, cmd=words), DONE)

    await turn(codex, settings)

    assert (codex.workspace / "inside").exists() is (sandbox != "reading")
    assert (codex.workspace / ".git" / "mark").exists() is (sandbox == "workspace-write")
    assert not (codex.home / "outside").exists()


async def test_a_workspace_without_a_repository_is_one(
    codex: RealCodex, server: ModelServer
) -> None:
    """There is no .git that could be written to."""
    plain = codex.workspace / "plain"
    plain.mkdir()
    codex.params = replace(codex.params, workspace=str(plain))
    server.script("codex", tool(SHELL, cmd="touch made; sleep 1"), DONE)

    await turn(codex)

    assert (plain / "made").exists()


INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
NOTE = {"name": "note", "description": "d", "inputSchema": {"type": "object", "properties": {}}}
NOTED = {"content": [{"type": "text", "text": "noted MARK"}]}
MCP = f"""\
answer() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\\n' "$id" "$1"; }}
while IFS= read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\\([0-9]*\\).*/\\1/p')
  case $line in
    *'"method":"initialize"'*) answer '{json.dumps(INFO)}' ;;
    *'"method":"tools/list"'*) answer '{json.dumps({"tools": [NOTE]})}' ;;
    *'"method":"tools/call"'*) answer "$(printf %s '{json.dumps(NOTED)}' | sed "s/MARK/$MARK/")" ;;
  esac
done
"""
"""A server of tools in POSIX sh."""


async def test_it_calls_the_tools_of_sortie(codex: RealCodex, server: ModelServer) -> None:
    """Without asking, also where all else is denied."""
    call = Answer(tools=(ToolUse(name="note", namespace="mcp__sortie"),))
    server.script("codex", call, DONE)
    tools = McpServer(name="sortie", argv=("/bin/sh", "-c", MCP), env={"MARK": "here"})
    codex.params = replace(codex.params, mcp_server=tools)

    _, heard = await turn(codex)

    (ended,) = heard.of(ToolEnded)
    (begun,) = heard.of(ToolStarted)
    assert (begun.name, ended.failed, ended.output) == ("mcp__sortie__note", False, "noted here")
    assert heard.of(PermissionAsked) == []
    assert "noted here" in said_to_model(server)


async def test_its_own_model_uses_tools_in_scripts(codex: RealCodex, server: ModelServer) -> None:
    """What a script calls is told, asked about and walled as what the model calls itself."""

    def script(code: str) -> Answer:
        return Answer(tools=(ToolUse(name="exec", namespace="functions", script=code),))

    patch = "*** Begin Patch\\n*** Add File: patched\\n+made\\n*** End Patch"
    server.script(
        "codex",
        script('text(JSON.stringify(await tools.exec_command({cmd: "touch made; sleep 1"})));'),
        script(f'text(JSON.stringify(await tools.apply_patch("{patch}")));'),
        script("text(JSON.stringify(await tools.mcp__sortie__note({})));"),
        script(f"await tools.exec_command({json.dumps({'cmd': 'touch refused', **ESCALATED})});"),
        DONE,
    )
    tools = McpServer(name="sortie", argv=("/bin/sh", "-c", MCP), env={"MARK": "here"})
    codex.params = replace(codex.params, mcp_server=tools)

    result, heard = await turn(codex, CodexSettings())

    assert getattr(result, "outcome", None) is TurnOutcome.COMPLETED
    used = [(event.name, event.kind) for event in heard.of(ToolStarted)]
    assert used == [
        (SHELL, "execute"),
        ("apply_patch", "edit"),
        ("mcp__sortie__note", "other"),
        (SHELL, "execute"),
    ]
    assert [event.failed for event in heard.of(ToolEnded)] == [False, False, False, True]
    assert [event.answer for event in heard.of(PermissionAsked)] == [
        "denied by permissions.inside for execute"
    ]
    made = {path.name for path in codex.workspace.iterdir() if path.is_file()}
    assert made == {"made", "patched"}


# How turns fail


async def test_a_usage_limit_is_known_with_its_end(codex: RealCodex, server: ModelServer) -> None:
    """By what the provider tells of its windows."""
    end = int(time.time()) + 7200
    headers = {
        "x-codex-primary-used-percent": "100",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": str(end),
    }
    limit = Answer(status=429, error="usage_limit_reached", message="limit", headers=headers)
    server.script("codex", limit)

    result, _ = await turn(codex)

    assert getattr(result, "error_kind", None) is ErrorKind.USAGE_LIMIT
    assert getattr(result, "resets_at", None) == datetime.fromtimestamp(end, UTC)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ErrorKind.RESPONSE_ERROR), (400, ErrorKind.TURN_FAILED), (429, ErrorKind.TURN_FAILED)],
)
async def test_errors_of_the_api_are_told(
    codex: RealCodex, server: ModelServer, status: int, kind: ErrorKind
) -> None:
    """A refused key is not tried again for ever."""
    server.script("codex", Answer(status=status, error="some_error", message="as scripted"))

    result, _ = await turn(codex)

    assert getattr(result, "error_kind", None) is kind
    assert CODEX_KEY not in str(result)


async def test_it_is_refused_without_a_login(codex: RealCodex) -> None:
    """Before a turn would fail, slowly."""
    env = {n: v for n, v in codex.params.env.items() if not n.startswith("OPENAI")}

    with trio.fail_after(LIMIT), pytest.raises(ExceptionGroup) as caught:
        async with codex.agent().session(codex.with_env(env)):
            pass

    (error,) = caught.value.exceptions
    assert isinstance(error, AgentError)
    assert (error.kind, "codex login" in str(error)) == (ErrorKind.RESPONSE_ERROR, True)


async def test_a_thread_of_another_provider_begins_anew(
    codex: RealCodex, server: ModelServer
) -> None:
    """The turn is taken all the same, and the transcript says why it knows nothing."""
    server.script("codex", DONE)
    with trio.fail_after(LIMIT):
        async with codex.agent().session(codex.params) as session:
            await session.run_turn("remember PING", Heard())
        home = codex.home / ".codex"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(
            '[model_providers.other]\nname = "Other"\nwire_api = "responses"\n'
            f'base_url = "{codex.params.env["OPENAI_BASE_URL"]}"\nenv_key = "OPENAI_API_KEY"\n'
        )
        heard = Heard()
        settings = CodexSettings(model="gpt-5", provider="other")
        params = replace(codex.params, resume_session_id=session.id)
        async with codex.agent(settings).session(params) as other:
            result = await other.run_turn("and now?", heard)

    assert result.outcome is TurnOutcome.COMPLETED
    assert other.id != session.id
    assert any("cannot be gone on with" in message for message in heard.messages)
