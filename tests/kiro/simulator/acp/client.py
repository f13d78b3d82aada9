"""A client of the simulator, which sends and reads messages as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import sortie

PROGRAM = [sys.executable, "-m", "sortie.kiro.simulator", "acp"]
Message = dict[str, Any]


class Client:
    """One process; ``told`` is what it has told since the last request."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path) -> None:
        self.process = process
        self.directory = directory
        self.told: list[Message] = []
        self._ids = 100

    def send(self, **message: Any) -> None:
        """Send a message."""
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> Message:
        """Return the next message of the simulator's."""
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the simulator has ended"
        message: Message = json.loads(line)
        return message

    def begin(self, method: str, **params: Any) -> int:
        """Ask for something; return the id of the request."""
        self._ids += 1
        self.told = []
        self.send(id=self._ids, method=method, params=params)
        return self._ids

    def answer(self, number: int) -> Message:
        """Read up to the answer to a request; a question of the simulator's fails the test."""
        while (message := self.read()).get("id") != number or "method" in message:
            assert "id" not in message, message
            self.told.append(message)
        return message

    def ask(self, method: str, **params: Any) -> Any:
        """Ask for something and return its result."""
        answer = self.answer(self.begin(method, **params))
        assert "error" not in answer, answer
        return answer["result"]

    def refused(self, method: str, **params: Any) -> tuple[int, str]:
        """Ask for something that is refused; return code and message."""
        error = self.answer(self.begin(method, **params))["error"]
        return error["code"], error["message"]

    def new(self) -> str:
        """Begin a session and return its id."""
        self.ask("initialize", protocolVersion=1)
        opened = self.ask("session/new", cwd=str(self.directory), mcpServers=[])
        return str(opened["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        """Begin a turn; return the id of the request."""
        return self.begin("session/prompt", sessionId=session, prompt=[_text(text)])

    def turn(self, session: str, text: str) -> Any:
        """Run a turn and return its result."""
        return self.ask("session/prompt", sessionId=session, prompt=[_text(text)])

    def question(self) -> Message:
        """Read up to the next question of the simulator's."""
        while "id" not in (message := self.read()):
            self.told.append(message)
        return message

    def choose(self, question: Message, option: str) -> None:
        """Answer a permission."""
        outcome = {"outcome": "selected", "optionId": option}
        self.send(id=question["id"], result={"outcome": outcome})

    def updates(self, kind: str) -> list[Message]:
        """Return the updates of a kind that were told."""
        bodies = (m["params"]["update"] for m in self.told if m.get("method") == "session/update")
        return [body for body in bodies if body["sessionUpdate"] == kind]

    def next_told(self, method: str) -> Message:
        """Read up to what is told by a method; return its parameters."""
        while (message := self.read()).get("method") != method:
            pass
        params: Message = message["params"]
        return params

    def told_by(self, method: str) -> list[Message]:
        """Return the parameters of what was told by a method."""
        return [m["params"] for m in self.told if m.get("method") == method]


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


@contextmanager
def client(tmp_path: Path, *arguments: str, **more: str) -> Iterator[Client]:
    """Have a process of the simulator, in a directory of its own, and end it."""
    directory = tmp_path / "work"
    directory.mkdir(exist_ok=True)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(sortie.__file__).parent.parent),
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "KIRO_API_KEY": "sk-1",
        **more,
    }
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield Client(process, directory)
    finally:
        process.kill()
        process.wait(timeout=10)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()
