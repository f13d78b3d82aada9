"""What the simulator says to a client, message by message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sortie.kiro.conversations import ConversationStores, KiroPlaces
from sortie.kiro.conversations.records import prompts
from tests.kiro.simulator.acp.client import client
from tests.kiro.simulator.test_agent_file import write_agent

TRUST = "--trust-all-tools"
V3 = ("--agent-engine=v3", "--auth-method=cli")
NOBODY = "0f0e0d0c-0b0a-4908-8706-050403020100"


def stores(tmp_path: Path) -> ConversationStores:
    """Return what the simulator has kept."""
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    return ConversationStores(KiroPlaces.of(home))


def test_it_says_that_it_is_a_simulator(tmp_path: Path) -> None:
    """And what engine v2 of Kiro can do, whichever version it is asked for."""
    with client(tmp_path) as agent:
        greeting = agent.ask("initialize", protocolVersion=99)

    assert greeting["protocolVersion"] == 1
    assert greeting["agentInfo"]["name"] == "sortie-kiro-sim"
    assert "simulator" in greeting["agentInfo"]["title"]
    assert greeting["agentCapabilities"]["loadSession"] is True
    assert greeting["agentCapabilities"]["sessionCapabilities"] == {}


def test_a_turn(tmp_path: Path) -> None:
    """A tool with all that is known of it, the answer in pieces, and what it has used."""
    with client(tmp_path, TRUST) as agent:
        session = agent.new()
        commands = agent.next_told("_kiro.dev/commands/available")
        result = agent.turn(session, "Hello\nsim: credits=0.25 context=12.5")

    path = str(agent.directory / "SORTIE_DEMO.md")
    (call,), (done,) = agent.updates("tool_call"), agent.updates("tool_call_update")
    (used,) = agent.told_by("_kiro.dev/metadata")
    said = "".join(each["content"]["text"] for each in agent.updates("agent_message_chunk"))
    assert commands["sessionId"] == session
    assert result == {"stopReason": "end_turn"}
    assert (call["title"], call["kind"], call["status"]) == (
        "write SORTIE_DEMO.md",
        "edit",
        "pending",
    )
    assert (call["locations"], call["_meta"]) == (
        [{"path": path}],
        {"kiro": {"toolName": "fs_write"}},
    )
    assert (done["toolCallId"], done["status"]) == (call["toolCallId"], "completed")
    assert done["content"] == [{"type": "diff", "path": path, "oldText": None, "newText": "Hello"}]
    assert said == "I have read **Hello**.\nI added a note to `SORTIE_DEMO.md`."
    assert used.pop("turnDurationMs") >= 0
    assert used == {
        "sessionId": session,
        "contextUsagePercentage": 12.5,
        "meteringUsage": [{"value": 0.25, "unit": "credit", "unitPlural": "credits"}],
    }
    (kept,) = stores(tmp_path).summaries()
    assert (kept.engine, kept.id, kept.directory) == ("v2", session, str(agent.directory))


def test_a_tool_that_is_not_trusted_is_asked_about(tmp_path: Path) -> None:
    """By kinds of answers; a rejected one is not used, and one for always is asked once."""
    note = tmp_path / "work" / "SORTIE_DEMO.md"
    with client(tmp_path, "--trust-tools=read") as agent:
        session = agent.new()
        turn = agent.prompt(session, "one")
        question = agent.question()
        agent.choose(question, "reject_once")
        rejected = agent.answer(turn)
        after_no = note.exists()
        turn = agent.prompt(session, "two")
        agent.choose(agent.question(), "allow_always")
        agent.answer(turn)
        agent.turn(session, "three")

    params = question["params"]
    assert question["id"] == 0
    assert question["method"] == "session/request_permission"
    assert (params["sessionId"], params["toolCall"]["kind"]) == (session, "edit")
    assert [option["kind"] for option in params["options"]] == [
        "allow_once",
        "allow_always",
        "reject_once",
    ]
    assert rejected["result"] == {"stopReason": "end_turn"}
    assert not after_no
    assert len(note.read_text().splitlines()) == 2


def test_a_turn_is_cancelled_while_it_waits(tmp_path: Path) -> None:
    """In silence, at work and with a question open; the next turn works, nothing else is ended."""
    with client(tmp_path) as agent:
        session = agent.new()
        stops = []
        for prompt in ("sim: hang=1", "sim: delay=60", "sim: silence=60", "a question"):
            turn = agent.prompt(session, prompt)
            if prompt == "a question":
                agent.question()
            agent.send(method="session/cancel", params={"sessionId": session})
            stops.append(agent.answer(turn)["result"]["stopReason"])
        agent.send(method="session/cancel", params={"sessionId": session})
        turn = agent.prompt(session, "sim: note=0 say=well delay=0.2")
        agent.send(method="session/cancel", params={"sessionId": "another"})
        after = agent.answer(turn)["result"]

    assert stops == ["cancelled"] * 4
    assert after == {"stopReason": "end_turn"}
    assert not (tmp_path / "work" / "SORTIE_DEMO.md").exists()


def test_a_conversation_is_loaded_with_its_history(tmp_path: Path) -> None:
    """In another process, in order, before the answer; the next turn goes on with it."""
    with client(tmp_path, TRUST) as agent:
        session = agent.new()
        agent.turn(session, "one")
    with client(tmp_path, TRUST) as agent:
        agent.ask("initialize", protocolVersion=1)
        agent.ask("session/load", sessionId=session, cwd=str(tmp_path / "work"), mcpServers=[])
        replayed = [message["params"]["update"] for message in agent.told]
        agent.turn(session, "sim: recall=1")

    assert [update["sessionUpdate"] for update in replayed] == [
        "user_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ]
    assert replayed[0]["content"]["text"] == "one"
    said = "".join(each["content"]["text"] for each in agent.updates("agent_message_chunk"))
    assert said == "I remember:\none"
    (kept,) = stores(tmp_path).summaries()
    assert prompts(stores(tmp_path).load(kept).records) == ("one", "sim: recall=1")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("ok", f"no session with the id {NOBODY}"),
        ("active", "Session is active in another process"),
    ],
)
def test_a_session_that_is_not_there_is_refused(tmp_path: Path, fault: str, message: str) -> None:
    """With the error of an engine that does not hang; a new session can be had after that."""
    with client(tmp_path, KIRO_SIM_ACP_LOAD=fault) as agent:
        code, said = agent.refused(
            "session/load", sessionId=NOBODY, cwd=str(agent.directory), mcpServers=[]
        )
        agent.new()

    assert code == -32603
    assert message in said


def test_loading_may_end_the_process(tmp_path: Path) -> None:
    """As some versions do for a session that is not there."""
    with client(tmp_path, KIRO_SIM_ACP_LOAD="exit") as agent:
        agent.begin("session/load", sessionId=NOBODY, cwd=str(agent.directory), mcpServers=[])

        assert agent.process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/new", {"cwd": "work", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/no/such/place", "mcpServers": []}, -32602),
        ("session/new", {"cwd": "/"}, -32602),
        ("session/load", {"cwd": "/", "mcpServers": []}, -32602),
        ("session/load", {"sessionId": "../up", "cwd": "/", "mcpServers": []}, -32602),
        ("session/prompt", {"sessionId": NOBODY, "prompt": []}, -32602),
        ("session/set_mode", {"sessionId": NOBODY, "modeId": "x"}, -32602),
        ("session/set_config_option", {"sessionId": NOBODY}, -32601),
        ("session/list", {}, -32601),
        ("session/close", {}, -32601),
        ("fs/what", {}, -32601),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, method: str, params: dict[str, Any], code: int
) -> None:
    """With the protocol's code, and the next request is answered."""
    with client(tmp_path) as agent:
        refused = agent.refused(method, **params)
        agent.new()

    assert refused[0] == code


def test_prompts_that_fail_are_answered_with_errors(tmp_path: Path) -> None:
    """A failure that was asked for, a malformed directive, an empty prompt, a deed that cannot be
    done; the turn after them works."""
    with client(tmp_path, TRUST) as agent:
        session = agent.new()
        errors = [
            agent.answer(agent.prompt(session, prompt))["error"]
            for prompt in ("sim: fail=boom", "sim: dealy=1", " ", "sim: write=../up.md")
        ]
        after = agent.turn(session, "Hello\nsim: acp_stop=refusal")

    assert [error["code"] for error in errors] == [-32603, -32602, -32602, -32603]
    assert [error["message"][:20] for error in errors] == [
        "boom",
        "simulator directive:",
        "the prompt is empty",
        "write=../up.md: lies",
    ]
    assert after == {"stopReason": "refusal"}


def test_modes_are_agents_and_models_can_be_set(tmp_path: Path) -> None:
    """The agent's tools count from then on, and the model is kept with the conversation."""
    write_agent({"name": "reader", "tools": ["read"]}, "reader", str(tmp_path / ".kiro"))
    with client(tmp_path, TRUST) as agent:
        agent.ask("initialize", protocolVersion=1)
        opened = agent.ask("session/new", cwd=str(agent.directory), mcpServers=[])
        session = opened["sessionId"]
        agent.ask("session/set_mode", sessionId=session, modeId="reader")
        agent.ask("session/set_model", sessionId=session, modelId="m-9")
        no_agent = agent.refused("session/set_mode", sessionId=session, modeId="nobody")
        agent.turn(session, "Hello")

    assert opened["modes"]["currentModeId"] == "kiro_default"
    assert [mode["id"] for mode in opened["modes"]["availableModes"]] == ["kiro_default", "reader"]
    assert opened["models"]["currentModelId"] == "auto"
    assert no_agent == (-32602, "there is no agent nobody")
    assert agent.updates("tool_call") == []
    (kept,) = stores(tmp_path).summaries()
    assert stores(tmp_path).load(kept).usages[0].model == "m-9"


def test_options_choose_agent_and_model(tmp_path: Path) -> None:
    """A model that was given stays; an agent that is not there is told, and another one works."""
    write_agent({"name": "reader"}, "reader", str(tmp_path / ".kiro"))
    with client(tmp_path, "--model", "m-1", "--agent", "reader") as agent:
        session = agent.new()
        set_model = agent.refused("session/set_model", sessionId=session, modelId="m-2")
        agent.turn(session, "Hello")
    with client(tmp_path, "--agent", "nobody") as other:
        other.new()
        missing = other.next_told("_kiro.dev/agent/not_found")

    assert set_model[0] == -32602
    assert agent.updates("tool_call") == []
    assert (missing["requestedAgent"], missing["fallbackAgent"]) == ("nobody", "kiro_default")


def test_hooks_of_the_agent_run(tmp_path: Path) -> None:
    """Of the session's beginning once, of prompts and their ends each time."""
    hooks = {
        "agentSpawn": [{"command": "echo spawned; echo spawn >>heard"}],
        "userPromptSubmit": [{"command": "echo submitted; echo submit >>heard"}],
        "stop": [{"command": "echo stop >>heard"}],
    }
    write_agent({"name": "ops", "tools": ["*"], "hooks": hooks}, "ops", str(tmp_path / ".kiro"))
    with client(tmp_path, "--agent=ops", TRUST) as agent:
        session = agent.new()
        said = []
        for _ in range(2):
            agent.turn(session, "sim: recall=1 store=none")
            chunks = agent.updates("agent_message_chunk")
            said.append("".join(each["content"]["text"] for each in chunks))

    assert said == ["I remember:\nspawned\nsubmitted", "I remember:\nsubmitted"]
    heard = (tmp_path / "work" / "heard").read_text().split()
    assert heard == ["spawn", "submit", "stop", "submit", "stop"]


def test_junk_and_late_answers_break_nothing(tmp_path: Path) -> None:
    """Lines that are no messages, answers that nobody waits for, and notifications."""
    with client(tmp_path) as agent:
        session = agent.new()
        assert agent.process.stdin
        agent.process.stdin.write(b"junk\n\n[]\n{}\n\xff\n[1]\n")
        agent.send(id=0, result={})
        agent.send(method="$/what", params={})
        result = agent.turn(session, "sim: note=0")

    assert result == {"stopReason": "end_turn"}


@pytest.mark.parametrize("prompt", [None, "sim: hang=1"])
def test_it_ends_with_its_client(tmp_path: Path, prompt: str | None) -> None:
    """Idle and in mid-turn, without a word on stderr."""
    with client(tmp_path) as agent:
        session = agent.new()
        if prompt:
            agent.prompt(session, prompt)
        assert agent.process.stdin
        agent.process.stdin.close()

        assert agent.process.wait(timeout=20) == 0
        assert agent.process.stderr
        assert agent.process.stderr.read() == b""


def test_without_a_key_nobody_is_logged_in(tmp_path: Path) -> None:
    """The launcher says so in plain words and ends."""
    with client(tmp_path, KIRO_API_KEY="") as agent:
        out, _ = agent.process.communicate(timeout=20)

    assert agent.process.returncode == 1
    assert b"You are not logged in" in out


def test_a_bad_key_fails_the_prompt(tmp_path: Path) -> None:
    """With the words that Kiro has for it."""
    with client(tmp_path, KIRO_API_KEY="bad") as agent:
        session = agent.new()
        error = agent.answer(agent.prompt(session, "Hello"))["error"]

    assert error["message"].startswith("Authentication failed.")


# Engine v3


def test_a_turn_of_v3(tmp_path: Path) -> None:
    """Its credits come before the answer, its context after it, and it is kept by v3."""
    with client(tmp_path, *V3) as agent:
        session = agent.new()
        turn = agent.prompt(session, "Hello\nsim: credits=0.25 context=12.5")
        agent.choose(agent.question(), "allow_once")
        agent.answer(turn)
        (before,) = agent.updates("session_info_update")
        after = agent.next_told("session/update")["update"]

    spent = {"usage": 0.25, "unit": "credit", "unitPlural": "credits"}
    assert before["_meta"]["kiro"] == {
        "kind": "turn_completion",
        "promptTurnSummaries": [spent],
    }
    assert after["_meta"]["kiro"] == {"kind": "context_usage", "contextUsagePercentage": 12.5}
    (kept,) = stores(tmp_path).summaries()
    assert (kept.engine, kept.id) == ("v3", session)


def test_sessions_of_v3_are_listed_closed_and_deleted(tmp_path: Path) -> None:
    """Loading one that is not there makes it."""
    with client(tmp_path, *V3) as agent:
        session = agent.new()
        agent.turn(session, "sim: note=0")
        listed = agent.ask("session/list", cwd=str(agent.directory))["sessions"]
        elsewhere = agent.ask("session/list", cwd="/")["sessions"]
        agent.ask("session/close", sessionId=session)
        closed = agent.refused("session/prompt", sessionId=session, prompt=[])
        agent.ask("session/delete", sessionId=session)
        made = agent.ask(
            "session/load", sessionId="sess_new", cwd=str(agent.directory), mcpServers=[]
        )
        after = agent.turn("sess_new", "sim: note=0")

    assert [(each["sessionId"], each["cwd"]) for each in listed] == [
        (session, str(agent.directory))
    ]
    assert (elsewhere, closed[0]) == ([], -32602)
    assert {option["category"] for option in made["configOptions"] if "category" in option} == {
        "mode",
        "model",
    }
    assert after == {"stopReason": "end_turn"}
    assert [kept.id for kept in stores(tmp_path).summaries()] == ["sess_new"]


def test_options_of_v3_are_set(tmp_path: Path) -> None:
    """All of them come back; what cannot be is refused."""
    with client(tmp_path, *V3) as agent:
        session = agent.new()
        for name, value in (("mode", "plan"), ("model", "m-9"), ("autopilot", False)):
            result = agent.ask(
                "session/set_config_option", sessionId=session, configId=name, value=value
            )
        refused = agent.refused(
            "session/set_config_option", sessionId=session, configId="mode", value="x"
        )

    current = {option["id"]: option["currentValue"] for option in result["configOptions"]}
    assert current == {"mode": "plan", "model": "m-9", "autopilot": False}
    assert refused[0] == -32602


def test_v3_asks_for_a_token_unless_it_has_a_login(tmp_path: Path) -> None:
    """A client that has none is refused as not logged in."""
    with client(tmp_path, "--agent-engine", "v3") as agent:
        begun = agent.begin("session/new", cwd=str(agent.directory), mcpServers=[])
        question = agent.question()
        agent.send(id=question["id"], error={"code": -32601, "message": "what?"})
        refused = agent.answer(begun)["error"]["code"]
        begun = agent.begin("session/new", cwd=str(agent.directory), mcpServers=[])
        agent.send(id=agent.question()["id"], result={"accessToken": "t"})
        opened = agent.answer(begun)["result"]

    assert question["method"] == "_kiro/auth/getAccessToken"
    assert refused == -32000
    assert opened["sessionId"].startswith("sess_")


@pytest.mark.parametrize("option", ["--agent=x", "--model=x", "--trust-tools=x", "-a", "nonsense"])
def test_v3_refuses_options_before_any_message(tmp_path: Path, option: str) -> None:
    """As it has its own ways to say them."""
    with client(tmp_path, *V3, option) as agent:
        out, err = agent.process.communicate(timeout=20)

    assert (agent.process.returncode, out) == (2, b"")
    assert b"error: " in err


def test_what_it_writes_is_one_message_a_line(tmp_path: Path) -> None:
    """Whatever the prompt holds."""
    with client(tmp_path) as agent:
        session = agent.new()
        agent.turn(session, "\u2028 \ud800 \x00 \x0b\r\nsim: note=0 store=v3")
        agent.turn(session, "\x00\ud800\nsim: note=0 store=v1")

    for message in agent.told:
        assert json.dumps(message)
    assert len(stores(tmp_path).summaries()) == 2
