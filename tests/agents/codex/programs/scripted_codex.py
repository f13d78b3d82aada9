#!/usr/bin/env python3
"""A program that speaks the app-server protocol of Codex and does what its prompts say.

It answers as codex 0.166.0 was seen to. ``--login none`` has it need a login that it does not have,
``--resume hang|writer`` is how it takes up a thread. Lines of a prompt that begin with ``codex:``
say what it does, one after the other; DEEDS lists them. Threads are kept in the login's home, from
their first turn on. Arguments that it does not know, such as ``-c``, are kept for ``show``.
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
from queue import Empty, SimpleQueue
from typing import Any

STORE = Path.home() / ".scripted-codex"


class Refused(Exception):
    """A request is answered with an error."""


class Interrupted(Exception):
    """The turn was interrupted."""


class Failed(Exception):
    """The turn fails with an error of Codex's."""

    def __init__(self, message: str, info: object = "other") -> None:
        super().__init__(message)
        self.info = info


class Codex:
    """One process; at most one thread."""

    def __init__(self, given: argparse.Namespace, unknown: list[str]) -> None:
        self.given, self.arguments = given, unknown
        self.thread = self.turn = ""
        self.opened_with: dict[str, Any] = {}
        self.turn_with: dict[str, Any] = {}
        self.asked = self.items = 0
        self.sums = [0, 0]
        self.heard: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.lock = threading.Lock()

    # The wire

    def send(self, **message: Any) -> None:
        with self.lock:
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

    def write(self, line: bytes) -> None:
        with self.lock:
            sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def tell(self, method: str, **params: Any) -> None:
        self.send(method=method, params={"threadId": self.thread, "turnId": self.turn, **params})

    def new_item(self, kind: str) -> str:
        self.items += 1
        return f"{kind}-{self.turn[-4:]}-{self.items}"

    def say(self, text: str) -> None:
        item = {"type": "agentMessage", "id": self.new_item("msg"), "text": ""}
        self.tell("item/started", item=item)
        for piece in (text[:3], text[3:]):
            self.tell("item/agentMessage/delta", itemId=item["id"], delta=piece)
        self.tell("item/completed", item=item | {"text": text})

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask the client; return its answer. Raises Interrupted where that comes first."""
        number, self.asked = self.asked, self.asked + 1
        about = {"threadId": self.thread, "turnId": self.turn} | params
        self.send(id=number, method=method, params=about)
        while True:
            message = self.heard.get()
            self.look(message)
            if message.get("id") == number and "method" not in message:
                self.tell("serverRequest/resolved", requestId=number)
                return message

    def look(self, message: dict[str, Any]) -> None:
        """Raises Interrupted where a message is what interrupts the turn."""
        if message.get("method") == "turn/interrupt":
            self.send(id=message["id"], result={})
            raise Interrupted

    def until_interrupted(self) -> None:
        while True:
            self.look(self.heard.get())

    def run(self) -> None:
        threading.Thread(target=self.listen, daemon=True).start()
        while True:
            message = self.heard.get()
            if "id" not in message or "method" not in message:
                continue
            try:
                if message["method"] == "turn/start":
                    self.take_turn(message)
                else:
                    self.send(id=message["id"], result=self.answer(message))
            except Refused as refused:
                self.send(id=message["id"], error={"code": -32600, "message": str(refused)})

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
                return {"userAgent": "sortie/0.166.0 (scripted)", "codexHome": str(STORE)}
            case "account/read":
                account = None if self.given.login == "none" else {"type": "apiKey"}
                return {"account": account, "requiresOpenaiAuth": True}
            case "thread/start":
                self.thread = str(uuid.uuid4())
                return self.opened(params)
            case "thread/resume":
                return self.go_on(params)
            case "turn/interrupt":
                raise Refused("no active turn to interrupt")
            case other:
                raise Refused(f"Invalid request: unknown variant `{other}`")

    def opened(self, params: dict[str, Any]) -> dict[str, Any]:
        self.opened_with = params
        self.tell("warning", message="Model metadata for `scripted` not found.")
        return {"thread": {"id": self.thread}, "model": params.get("model", "scripted")}

    def go_on(self, params: dict[str, Any]) -> dict[str, Any]:
        id_ = params["threadId"]
        if self.given.resume == "hang":
            time.sleep(600)
        if self.given.resume == "writer":
            self.given.resume = ""
            raise Refused(f"thread {id_} already has an active writer")
        if not (STORE / id_).exists():
            raise Refused(f"no rollout found for thread id {id_}")
        self.thread = id_
        known = (STORE / id_).read_text().splitlines()
        self.sums = [100 * len(known), 20 * len(known)]
        answer = self.opened(params)
        self.turn = "an-earlier-turn"
        self.used(0)
        return answer

    def remember(self, text: str) -> int:
        STORE.mkdir(exist_ok=True)
        with (STORE / self.thread).open("a", encoding="utf-8") as history:
            history.write(json.dumps(text) + "\n")
        return len((STORE / self.thread).read_text().splitlines())

    def used(self, calls: int = 1) -> None:
        """Tell what a call of the model has used."""
        self.sums = [self.sums[0] + 100 * calls, self.sums[1] + 20 * calls]

        def counts(tokens: int, output: int) -> dict[str, int]:
            cached = {"cachedInputTokens": tokens // 10, "cacheWriteInputTokens": 0}
            reasoning = {"totalTokens": tokens + output, "reasoningOutputTokens": output // 2}
            return {"inputTokens": tokens, "outputTokens": output, **cached, **reasoning}

        told = {"total": counts(*self.sums), "last": counts(100, 20), "modelContextWindow": 1000}
        self.tell("thread/tokenUsage/updated", tokenUsage=told)

    def take_turn(self, message: dict[str, Any]) -> None:
        params = message["params"]
        self.turn_with = params
        self.turn = str(uuid.uuid4())
        turn: dict[str, Any] = {"id": self.turn, "items": [], "status": "inProgress", "error": None}
        self.send(id=message["id"], result={"turn": turn})
        self.tell("turn/started", turn=turn)
        text = params["input"][0]["text"]
        user = {"type": "userMessage", "id": self.new_item("user"), "content": params["input"]}
        self.tell("item/started", item=user)
        self.tell("item/completed", item=user)
        status, error = "completed", None
        try:
            self.say(f"prompt {self.remember(text)}")
            for line in text.splitlines():
                word, _, rest = line.partition("codex: ")
                if not word and rest:
                    deed = next(deed for deed in DEEDS if rest.startswith(deed))
                    DEEDS[deed](self, rest.removeprefix(deed).strip())
        except Interrupted:
            status = "interrupted"
        except Failed as failed:
            status = "failed"
            error = {"message": str(failed), "codexErrorInfo": failed.info}
            self.tell("error", error=error, willRetry=False)
        self.used()
        self.tell("turn/completed", turn=turn | {"status": status, "error": error})

    # What its prompts make it do

    def command(self, rest: str) -> None:
        """``command CWD COMMAND``: ask whether it may run something outside of the sandbox."""
        cwd, _, command = rest.partition(" ")
        where = {"command": command, "cwd": cwd, "commandActions": [{"type": "unknown"}]}
        item = {"type": "commandExecution", "id": self.new_item("call"), **where}
        self.tell("item/started", item=item | {"status": "inProgress"})
        method = "item/commandExecution/requestApproval"
        answer = self.ask(method, itemId=item["id"], reason="it is needed", **where)
        decision = answer["result"]["decision"]
        if decision == "accept":
            ran = subprocess.run(
                ["/bin/sh", "-c", command], cwd=cwd, capture_output=True, text=True
            )
            done = {"exitCode": ran.returncode, "aggregatedOutput": ran.stdout, "durationMs": 7}
            status = "failed" if ran.returncode else "completed"
            self.tell("item/completed", item=item | done | {"status": status})
        else:
            self.tell("item/completed", item=item | {"status": "declined"})
        self.say(f"it was {decision}")

    def patch(self, rest: str) -> None:
        """``patch KIND PATH``: ask whether it may change a file outside of the sandbox."""
        kind, _, path = rest.partition(" ")
        change = {"path": path, "kind": {"type": kind}, "diff": "made\n"}
        item = {"type": "fileChange", "id": self.new_item("call"), "changes": [change]}
        self.tell("item/started", item=item | {"status": "inProgress"})
        answer = self.ask("item/fileChange/requestApproval", itemId=item["id"], grantRoot=None)
        decision = answer["result"]["decision"]
        if decision == "accept":
            Path(path).write_text("made\n", encoding="utf-8")
        status = "completed" if decision == "accept" else "declined"
        self.tell("item/completed", item=item | {"status": status})

    def wish(self, rest: str) -> None:
        """``wish METHOD PARAMS``: ask for anything, and say what was answered."""
        method, _, params = rest.partition(" ")
        answer = self.ask(method, **json.loads(params or "{}"))
        self.say(json.dumps(answer.get("result", answer.get("error")), sort_keys=True))

    def shell(self, rest: str) -> None:
        """``shell COMMAND``: run something in a session of its own; it outlives an interrupt."""
        item = {"type": "commandExecution", "id": self.new_item("call"), "command": rest}
        self.tell("item/started", item=item | {"status": "inProgress"})
        process = subprocess.Popen(["/bin/sh", "-c", rest], start_new_session=True)
        while process.poll() is None:
            try:
                self.look(self.heard.get(timeout=0.05))
            except Empty:
                continue
        status = "failed" if process.returncode else "completed"
        done = {"status": status, "exitCode": process.returncode, "durationMs": 20}
        self.tell("item/completed", item=item | done)

    def subagent(self, _: str) -> None:
        """Tell what a subagent's thread does."""
        other = {"threadId": "another-thread", "turnId": "another-turn"}
        self.send(method="thread/started", params={"thread": {"id": "another-thread"}})
        counts = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050}
        told = {"total": counts, "last": counts, "modelContextWindow": 2000}
        params = other | {"tokenUsage": told}
        self.send(method="thread/tokenUsage/updated", params=params)
        item = {"type": "agentMessage", "id": "m", "text": "said aside"}
        self.send(method="item/completed", params=other | {"item": item})
        change = {"path": f"{os.getcwd()}/aside", "kind": {"type": "add"}, "diff": "made\n"}
        changed: dict[str, Any] = {"type": "fileChange", "id": "change-aside", "changes": [change]}
        self.send(method="item/started", params=other | {"item": changed})
        self.ask("item/fileChange/requestApproval", **other, itemId="change-aside")
        turn = {"id": "another-turn", "status": "failed", "error": {"message": "aside"}}
        self.send(method="turn/completed", params=other | {"turn": turn})

    def limit(self, rest: str) -> None:
        """``limit SECONDS``: the account is used up until then."""
        if rest:
            used = {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": int(rest)}
            more = {"usedPercent": 40, "windowDurationMins": 10080, "resetsAt": int(rest) * 2}
            self.tell("account/rateLimits/updated", rateLimits={"primary": used, "secondary": more})
        raise Failed("You\u2019ve hit your usage limit. Try again later.", "usageLimitExceeded")

    def fail(self, rest: str) -> None:
        info, _, message = rest.partition(" ")
        raise Failed(message or "as it was told", json.loads(info) if info else "other")

    def secret(self, _: str) -> None:
        key = os.environ["SCRIPTED_API_KEY"]
        self.say(key)
        item = {"type": "commandExecution", "id": self.new_item("call"), "command": f"echo {key}"}
        self.tell("item/started", item=item | {"status": "inProgress"})
        done = {"status": "failed", "aggregatedOutput": key, "exitCode": 1}
        self.tell("item/completed", item=item | done)
        sys.stderr.write(f"key {key}\n")
        sys.stderr.flush()
        raise Failed(f"bad key {key}")

    def noise(self, _: str) -> None:
        for _line in range(20):
            sys.stderr.write(("e" * 100 + "\n") * 1000)
            sys.stderr.flush()

    def junk(self, _: str) -> None:
        for line in (b"", b"no message", b"[1, [2]]", b"{}", b"\xff\xfe", b"null", b"[" * 10_000):
            self.write(line)
        self.send(method="item/started", params=7)
        self.tell("item/started", item=[])
        self.tell("item/completed", item={"type": "commandExecution", "id": 7, "exitCode": "x"})
        self.tell("item/completed", item={"type": "fileChange", "id": "f", "changes": {"path": 1}})
        self.tell("thread/tokenUsage/updated", tokenUsage={"total": {"inputTokens": "much"}})
        self.tell("account/rateLimits/updated", rateLimits={"primary": [], "secondary": 7})
        self.tell("turn/completed", turn={"id": 7})

    def unknown(self, _: str) -> None:
        self.tell("item/dreamt", of="tomorrow")
        item = {"type": "dream", "id": "d", "status": "dreaming", "more": {"a": [1]}}
        self.tell("item/started", item=item)
        self.tell("item/completed", item=item)
        self.send(method="thing/new", params=[1])
        self.ask("item/tool/dream", more=1)

    def repeated(self, _: str) -> None:
        item = {"type": "commandExecution", "id": "r", "command": "again"}
        for method in ("item/started", "item/completed", "item/started", "item/completed"):
            self.tell(method, item=item | {"status": "completed", "exitCode": 0})
        for _time in range(2):
            self.asked = 0
            self.ask("item/commandExecution/requestApproval", itemId="r", command="x", cwd="/")

    def unasked(self, _: str) -> None:
        for number in (0, 1, 2, 999, "1", None, -1):
            self.send(id=number, result={"turn": {"id": "none", "status": "completed"}})
            self.send(id=number, error={"code": 1, "message": "no"})

    def leave(self, rest: str) -> None:
        """``leave`` a process in a session of its own; with ``holding`` it holds what is open."""
        sink = None if rest == "holding" else subprocess.DEVNULL
        subprocess.Popen(["/bin/sleep", "600"], start_new_session=True, stdout=sink, stderr=sink)
        time.sleep(1)

    def orphan(self, _: str) -> None:
        command = "(sleep 600 >/dev/null 2>&1 &)"
        subprocess.run(["/bin/sh", "-c", command], start_new_session=True, check=True)
        self.until_interrupted()

    def talk(self, _: str) -> None:
        while self.heard.empty():
            self.say("and on ")
            time.sleep(0.05)
        self.until_interrupted()

    def recall(self, _: str) -> None:
        self.say(f"it was said: {' '.join((STORE / self.thread).read_text().split())}")

    def show(self, _: str) -> None:
        """Say with what it was started, and how thread and turn were opened."""
        turn = {name: value for name, value in self.turn_with.items() if name != "input"}
        shown = {"arguments": self.arguments, "thread": self.opened_with, "turn": turn}
        self.say(json.dumps(shown))

    def deaf(self, _: str) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.given.stubborn = True
        while True:
            time.sleep(600)

    def unterminated(self, _: str) -> None:
        item = {"type": "agentMessage", "id": "last", "text": "last words"}
        params = {"threadId": self.thread, "turnId": self.turn, "item": item}
        sys.stdout.write(json.dumps({"method": "item/completed", "params": params}))
        sys.stdout.flush()
        os._exit(1)


Deed = Callable[[Codex, str], None]
DEEDS: dict[str, Deed] = {
    "command": Codex.command,
    "patch": Codex.patch,
    "wish": Codex.wish,
    "shell": Codex.shell,
    "subagent": Codex.subagent,
    "limit": Codex.limit,
    "fail": Codex.fail,
    "secret": Codex.secret,
    "noise": Codex.noise,
    "unterminated": Codex.unterminated,
    "exit": lambda codex, rest: os._exit(int(rest)),
    "die later": lambda codex, _: threading.Timer(0.05, lambda: os._exit(3)).start(),
    "say": lambda codex, rest: codex.say(rest),
    "tell": lambda codex, rest: codex.tell(
        rest.split(" ", 1)[0], **json.loads(rest.split(" ", 1)[1])
    ),
    "long line": lambda codex, _: codex.say("x" * 5000),
    "megabyte": lambda codex, _: codex.say("x" * 2**20),
    "too long": lambda codex, _: codex.say("x" * (10 * 1024 * 1024)),
    "hang": lambda codex, _: codex.until_interrupted(),
    "deaf": Codex.deaf,
    "junk": Codex.junk,
    "unknown": Codex.unknown,
    "repeated": Codex.repeated,
    "unasked": Codex.unasked,
    "leave": Codex.leave,
    "orphan": Codex.orphan,
    "talk": Codex.talk,
    "recall": Codex.recall,
    "show": Codex.show,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--login", default="")
    parser.add_argument("--resume", default="")
    parser.add_argument("--mute", action="store_true")
    parser.add_argument("--stubborn", action="store_true")
    given, unknown = parser.parse_known_args()
    sys.stderr.write("scripted codex\n")
    sys.stderr.flush()
    if given.mute:
        time.sleep(600)
    Codex(given, unknown).run()


if __name__ == "__main__":
    main()
