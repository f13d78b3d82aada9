#!/usr/bin/env python3
"""An agent that speaks the Agent Client Protocol and does what its prompts say; stdlib only.

``--like NAME`` is what it calls itself, and how it counts; ``--without load,resume`` is what it
cannot do; ``--load hang|error`` and ``--version N`` is how it greets; ``--spent`` is what a session
had cost that it loads. ``--modes a,b`` are its modes, the first is the present one; with
``--mode-option`` they are a config option, and with ``--stuck`` none is ever changed. Lines of a
prompt that begin
with ``acp:`` say what it does, one after the other; DEEDS lists them. Conversations are kept in
the login's home.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

STORE = Path.home() / ".scripted-agent"
OPTIONS = [
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
]
MODEL = {
    "id": "m",
    "category": "model",
    "type": "select",
    "currentValue": "small",
    "options": [{"value": "small"}, {"value": "large"}],
}


MODES = {
    "gemini-cli": "default,yolo",
    "Copilot": ",".join(
        f"https://agentclientprotocol.com/protocol/session-modes#{mode}"
        for mode in ("agent", "autopilot")
    ),
}


DENIED = {"OpenCode": "end_turn", "@agentclientprotocol/codex-acp": "cancelled"}
"""Agents that end their turn when something is denied, and how."""


class Refused(Exception):
    """A request is answered with an error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Cancelled(Exception):
    """The turn was cancelled."""


class Agent:
    """One process; at most one session."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.session = ""
        self.asked = 0
        self.input = self.output = 0
        self.cost = 0.0
        self.meta: object = None
        self.modes = (given.modes or MODES.get(given.like, "careful,bold")).split(",")
        self.mode = self.modes[0]
        self.hoard: list[bytes] = []
        self.heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.lock = threading.Lock()

    # The wire

    def send(self, **message: Any) -> None:
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            sys.stdout.flush()

    def update(self, update: str, /, **body: Any) -> None:
        params = {"sessionId": self.session, "update": {"sessionUpdate": update, **body}}
        self.send(method="session/update", params=params)

    def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        self.update(kind, content={"type": "text", "text": text})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the client; return its answer. Raises Cancelled where it cancels first."""
        number, self.asked = self.asked, self.asked + 1
        self.send(id=number, method=method, params={"sessionId": self.session, **params})
        cancelled = False
        while True:
            message = self.heard.get()
            if message.get("method") == "session/cancel":
                cancelled = True
            elif message.get("id") == number and "method" not in message:
                if cancelled:
                    raise Cancelled
                return message

    def until_cancelled(self) -> None:
        while self.heard.get().get("method") != "session/cancel":
            pass
        raise Cancelled

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        while True:
            message = self.heard.get()
            if "id" not in message or "method" not in message:
                continue
            try:
                self.send(id=message["id"], result=self.answer(message))
            except Refused as refused:
                error = {"code": refused.code, "message": str(refused), "data": refused.data}
                self.send(id=message["id"], error=error)

    def listen(self) -> None:
        for line in sys.stdin:
            self.heard.put(json.loads(line))
        if not self.given.stubborn:
            os._exit(0)

    # What it is asked

    def answer(self, message: dict[str, Any]) -> Any:
        params = message["params"]
        match message["method"]:
            case "initialize":
                return self.greet()
            case "session/new":
                if self.given.login:
                    raise Refused(-32000, "Authentication required")
                self.session = str(uuid.uuid4())
                return {"sessionId": self.session, **self.offers()}
            case "session/load" | "session/resume" as how:
                return self.go_on(how, params["sessionId"])
            case "session/set_mode" | "session/set_config_option":
                value = params.get("modeId", params.get("value"))
                self.remember(f"{value} was set")
                if value in self.modes and not self.given.stuck:
                    self.mode = value
                return self.offers() if self.given.mode_option else {}
            case "session/prompt":
                self.meta = params.get("_meta")
                return self.prompt(params["prompt"][0]["text"])
            case other:
                raise Refused(-32601, f"what is {other}?")

    def greet(self) -> Any:
        able: dict[str, Any] = {}
        if "load" not in self.given.without:
            able["loadSession"] = True
        if "resume" not in self.given.without:
            able["sessionCapabilities"] = {"resume": {}}
        return {
            "protocolVersion": self.given.version,
            "agentCapabilities": able,
            "agentInfo": {"name": self.given.like, "version": "1"},
            "authMethods": [],
        }

    def offers(self) -> dict[str, Any]:
        if self.given.mode_option:
            option = {"id": "mode", "category": "mode", "currentValue": self.mode}
            options = [{"value": mode} for mode in self.modes]
            return {"configOptions": [MODEL, {**option, "options": options}]}
        modes = {"availableModes": [{"id": m} for m in self.modes], "currentModeId": self.mode}
        return {"configOptions": [MODEL], "modes": modes}

    def go_on(self, how: str, session: str) -> Any:
        if self.given.load == "hang":
            time.sleep(600)
        if self.given.load == "error" or not (STORE / session).exists():
            raise Refused(-32002, f"no session {session}")
        self.session = session
        if how == "session/load":
            for line in (STORE / session).read_text().splitlines():
                self.say(line, "user_message_chunk")
                self.say("an answer of old")
            self.update("tool_call", toolCallId="old", title="old", status="in_progress")
            if self.given.spent:
                self.paid(self.given.spent)
        return self.offers()

    def remember(self, text: str) -> int:
        STORE.mkdir(exist_ok=True)
        with (STORE / self.session).open("a", encoding="utf-8") as history:
            history.write(json.dumps(text) + "\n")
        return len((STORE / self.session).read_text().splitlines())

    def prompt(self, text: str) -> Any:
        self.say(f"prompt {self.remember(text)}\n")
        stop = "end_turn"
        try:
            for line in text.splitlines():
                word, _, rest = line.partition("acp: ")
                if not word and rest:
                    deed = next(deed for deed in DEEDS if rest.startswith(deed))
                    stop = DEEDS[deed](self, rest.removeprefix(deed).strip()) or stop
        except Cancelled:
            stop = "cancelled"
        self.input += 100
        self.output += 20
        usage = {"inputTokens": self.input, "outputTokens": self.output}
        return {"stopReason": stop, "usage": usage}

    # What its prompts make it do

    def tell_meta(self, _rest: str) -> None:
        """``meta``: say what came with the prompt, and what the environment has of it."""
        self.say(f"{json.dumps(self.meta)} {os.environ.get('TRACEPARENT')}\n")

    def tool(self, rest: str) -> str | None:
        """``tool KIND PATH``: use a tool, which writes a file, if that is allowed."""
        kind, _, path = rest.partition(" ")
        call: dict[str, Any] = {
            "toolCallId": f"t{self.asked}",
            "title": f"use {kind}",
            "kind": kind,
        }
        call |= {"status": "pending", "locations": [{"path": path}] if path else []}
        self.update("tool_call", **call)
        outcome = self.ask("session/request_permission", toolCall=call, options=OPTIONS)
        chosen = outcome["result"]["outcome"].get("optionId")
        allowed = chosen in ("always", "once")
        if allowed and path:
            Path(path).write_text("made\n", encoding="utf-8")
        status = "completed" if allowed else "failed"
        said = [{"type": "content", "content": {"type": "text", "text": f"it was {chosen}"}}]
        self.update("tool_call_update", toolCallId=call["toolCallId"], status=status, content=said)
        if not allowed and self.given.like in DENIED:
            return DENIED[self.given.like]
        self.say("and went on\n")
        return None

    def shell(self, rest: str) -> None:
        """``shell COMMAND``: run something in a session of its own, as agents do."""
        self.update("tool_call", toolCallId="shell", title=rest, kind="execute")
        process = subprocess.Popen(["/bin/sh", "-c", rest], start_new_session=True)
        while process.poll() is None:
            try:
                message = self.heard.get(timeout=0.05)
            except Exception:
                continue
            if message.get("method") == "session/cancel":
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Cancelled
        self.update("tool_call_update", toolCallId="shell", status="completed")

    def files(self, _: str) -> None:
        """Ask for what was not offered."""
        asked = [
            self.ask("fs/read_text_file", path="/etc/passwd"),
            self.ask("terminal/create", command="ls"),
            self.ask("_vendor/thing"),
        ]
        self.say(" ".join(str(answer["error"]["code"]) for answer in asked))

    def plan(self, _: str) -> None:
        entries = [("look", "completed"), ("write", "in_progress"), ("test", "pending")]
        self.update("plan", entries=[{"content": c, "status": s} for c, s in entries])

    def change(self, rest: str) -> None:
        """``change MODE``: be in another mode from now on."""
        if self.given.mode_option:
            self.mode = rest
            self.update("config_option_update", **self.offers())
        else:
            self.update("current_mode_update", currentModeId=rest)

    def paid(self, rest: str) -> None:
        """``paid AMOUNT``: the conversation has cost so much more."""
        self.cost += float(rest)
        cost = {"amount": self.cost, "currency": "USD"}
        self.update("usage_update", used=50, size=200, cost=cost)

    def credits(self, rest: str) -> None:
        """``credits AMOUNT``: tell them as Kiro does, shortly after the turn."""
        metered = [{"value": float(rest), "unit": "credit", "unitPlural": "credits"}]
        params = {"sessionId": self.session, "contextUsagePercentage": 25.0}
        self.send(method="_kiro.dev/metadata", params=params)
        later = {**params, "meteringUsage": metered}
        told = {"method": "_kiro.dev/metadata", "params": later}
        threading.Timer(0.01, lambda: self.send(**told)).start()

    def secret(self, _: str) -> None:
        key = os.environ["SCRIPTED_API_KEY"]
        self.say(key[:5])
        self.say(key[5:])
        self.update("tool_call", toolCallId="s", title=f"cat {key}", kind="read")
        sys.stderr.write(f"key {key}\n")
        sys.stderr.flush()
        raise Refused(-32603, f"bad key {key}")

    def write(self, line: bytes) -> None:
        """Write a line that is none of the protocol's."""
        with self.lock:
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def noise(self, _: str) -> None:
        for _line in range(20):
            sys.stderr.write(("e" * 100 + "\n") * 1000)
            sys.stderr.flush()

    def endless(self, _: str) -> None:
        """Write a line that has no end, and wait."""
        with self.lock:
            sys.stdout.buffer.write(b"x" * (10 * 2**20 + 1))
            sys.stdout.buffer.flush()
        self.until_cancelled()

    def junk(self, _: str) -> None:
        for line in (b"", b"no message", b"[1, [2]]", b"{}", b"\xff\xfe", b"null", b"[" * 10_000):
            self.write(line)
        self.write(b'{"method": "session/update", "params": {"update": [{}]}}')
        self.write(b'{"method": "session/update", "params": 7}')
        self.update("tool_call", toolCallId=7, locations={"path": []}, content="x", kind=[])
        self.update("usage_update", used="much", size=-1, cost={"amount": "1", "currency": 2})

    def unknown(self, _: str) -> None:
        self.update("new_thing", of="tomorrow")
        self.update("tool_call", toolCallId="n", kind="dream", status="dreaming", more={"a": [1]})
        self.update("", nothing=None)
        self.send(method="_new/thing", params=[1])
        self.send(method="session/new_thing", params={"sessionId": "another"})
        self.ask("session/what", more=1)

    def repeated(self, _: str) -> None:
        for status in ("pending", "completed", "pending", "failed", "completed"):
            self.update("tool_call", toolCallId="r", title="again", status=status)
        self.asked = 0
        self.ask("fs/read_text_file", path="a")
        self.asked = 0
        self.ask("fs/read_text_file", path="b")

    def unasked(self, _: str) -> None:
        for number in (0, 1, 2, 999, "1", None, -1):
            self.send(id=number, result={"stopReason": "end_turn"})
            self.send(id=number, error={"code": 1, "message": "no"})

    def leave(self, rest: str) -> None:
        """``leave`` a process in a session of its own; with ``holding`` it holds what is open."""
        sink = None if rest == "holding" else subprocess.DEVNULL
        command = ["/bin/sleep", "600"]
        subprocess.Popen(command, start_new_session=True, stdout=sink, stderr=sink)
        time.sleep(1)

    def orphan(self, _: str) -> None:
        """Run a tool that has lost its parent, and wait for it."""
        command = "(sleep 600 >/dev/null 2>&1 &)"
        subprocess.run(["/bin/sh", "-c", command], start_new_session=True, check=True)
        self.until_cancelled()

    def talk(self, _: str) -> None:
        while self.heard.empty():
            self.say("and on ")
            time.sleep(0.05)
        self.until_cancelled()

    def recall(self, _: str) -> None:
        said = (STORE / self.session).read_text().split()
        self.say(f"it was said: {' '.join(said)}")

    def deaf(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.given.stubborn = True
        while True:
            time.sleep(600)

    def grow(self, rest: str) -> None:
        """``grow MB``: take so much more memory, for good."""
        self.hoard.append(os.urandom(1024) * (1024 * int(rest)))

    def die_later(self, _: str) -> None:
        threading.Timer(0.05, lambda: os._exit(3)).start()

    def unterminated(self, _: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}}
        update["content"]["text"] = "last words"  # type: ignore[index]
        params = {"sessionId": self.session, "update": update}
        sys.stdout.write(json.dumps({"method": "session/update", "params": params}))
        sys.stdout.flush()
        os._exit(1)

    def fail(self, rest: str) -> None:
        raise Refused(-32603, rest or "as it was told", {"errorName": "APIError"})

    def end(self, rest: str) -> None:
        what, _, number = rest.partition(" ")
        if what == "signal":
            os.kill(os.getpid(), getattr(signal, f"SIG{number}"))
            time.sleep(600)
        os._exit(int(number))


Deed = Callable[[Agent, str], "str | None"]
DEEDS: dict[str, Deed] = {
    "meta": Agent.tell_meta,
    "tool": Agent.tool,
    "shell": Agent.shell,
    "files": Agent.files,
    "plan": Agent.plan,
    "paid": Agent.paid,
    "credits": Agent.credits,
    "secret": Agent.secret,
    "noise": Agent.noise,
    "grow": Agent.grow,
    "die later": Agent.die_later,
    "unterminated": Agent.unterminated,
    "fail": Agent.fail,
    "exit": lambda agent, rest: agent.end(f"exit {rest}"),
    "signal": lambda agent, rest: agent.end(f"signal {rest}"),
    "stop": lambda agent, rest: rest,
    "say": lambda agent, rest: agent.say(rest),
    "think": lambda agent, rest: agent.say(rest + "\n", "agent_thought_chunk"),
    "long line": lambda agent, _: agent.say("x" * 5000),
    "too long": lambda agent, _: agent.say("x" * (10 * 1024 * 1024)),
    "endless": Agent.endless,
    "hang": lambda agent, _: agent.until_cancelled(),
    "deaf": Agent.deaf,
    "junk": Agent.junk,
    "unknown": Agent.unknown,
    "repeated": Agent.repeated,
    "unasked": Agent.unasked,
    "leave": Agent.leave,
    "orphan": Agent.orphan,
    "talk": Agent.talk,
    "recall": Agent.recall,
    "change": Agent.change,
    "megabyte": lambda agent, _: agent.say("x" * 2**20),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--like", default="scripted")
    parser.add_argument("--without", default="")
    parser.add_argument("--load", default="")
    parser.add_argument("--version", type=int, default=1)
    parser.add_argument("--spent", default="")
    parser.add_argument("--modes", default="")
    parser.add_argument("--mode-option", action="store_true")
    parser.add_argument("--stuck", action="store_true")
    parser.add_argument("--login", action="store_true")
    parser.add_argument("--mute", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    given = parser.parse_args()
    sys.stderr.write("scripted agent\n")
    sys.stderr.flush()
    if given.mute:
        time.sleep(600)
    Agent(given).run()


if __name__ == "__main__":
    main()
