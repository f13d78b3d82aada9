#!/usr/bin/env python3
"""A toy of an agent: JSON lines both ways, one conversation until the end of its stdin.

It is told ``hello`` (with an id to resume, or null), then ``prompt``, ``answer`` and ``cancel``.
Words in a prompt say what it does; DEEDS lists them.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

STORE = Path.home() / ".toy-agent"


def write(text: str, stream: Any = sys.stdout) -> None:
    """Write some text at once."""
    stream.write(text)
    stream.flush()


def tell(what: str, /, **values: object) -> None:
    """Send a message."""
    write(json.dumps({"is": what} | values) + "\n")


class Conversation:
    """A conversation, which is kept in the login's home."""

    def __init__(self, resume: str | None) -> None:
        known = resume is not None and (STORE / resume).exists()
        self.id = resume if resume is not None and known else str(uuid.uuid4())
        self.told = False
        self.used = 0
        self.heard: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def prompt(self, text: str) -> None:
        """Take one prompt to its end. The conversation's id is told no earlier than here."""
        STORE.mkdir(exist_ok=True)
        with (STORE / self.id).open("a", encoding="utf-8") as history:
            history.write(json.dumps(text) + "\n")
        if not self.told:
            self.told = True
            tell("session", id=self.id)
        tell("say", text=f"prompt {len((STORE / self.id).read_text().splitlines())}")
        deeds = (deed for word, deed in DEEDS.items() if f"toy: {word}" in text)
        failure = next(deeds, fine)(self)
        self.used += len(text)
        tell("usage", input=self.used, cost=self.used / 1000)
        tell("done", ok=failure is None, why=failure)

    def shell(self) -> str | None:
        """Use a tool, if that is allowed."""
        tell("ask", tool="shell", what="touch made-by-toy")
        answer = self.heard.get()
        if answer["do"] == "cancel":
            return "cancelled"
        if answer["answer"] != "yes":
            return "shell was refused"
        tell("tool", id="t1", name="shell", kind="execute", files=["made-by-toy"])
        Path("made-by-toy").touch()
        tell("tool_done", id="t1", failed=False)
        return None

    def hang(self) -> str:
        """Do nothing until it is cancelled."""
        while self.heard.get()["do"] != "cancel":
            pass
        return "cancelled"


Deed = Callable[[Conversation], "str | None"]


def fine(_: Conversation) -> None:
    """Do nothing special."""


def fail(_: Conversation) -> str:
    """Fail."""
    return "as it was told"


def deaf(_: Conversation) -> None:
    """Hear nothing any more."""
    time.sleep(600)


def secret(_: Conversation) -> None:
    """Print what nobody may see."""
    tell("say", text=f"key {os.environ.get('TOY_KEY')}")
    write(f"key {os.environ.get('TOY_KEY')}\n", sys.stderr)


def noise(_: Conversation) -> None:
    """Write a lot where nobody has to look."""
    for _line in range(20):
        write(("e" * 100 + "\n") * 1000, sys.stderr)
    write("this is no message\n")


def unterminated(_: Conversation) -> None:
    """Die in the middle of a line, with all but its end."""
    write(json.dumps({"is": "say", "text": "last words"}))
    os._exit(1)


def line(size: int) -> Deed:
    """Say so many characters."""
    return lambda _: tell("say", text="x" * size)


def die(deed: Callable[[], object]) -> Deed:
    """End the process in some way."""

    def now(_: Conversation) -> None:
        deed()
        time.sleep(600)

    return now


DEEDS: dict[str, Deed] = {
    "shell": Conversation.shell,
    "hang": Conversation.hang,
    "deaf": deaf,
    "fail": fail,
    "secret": secret,
    "noise": noise,
    "unterminated": unterminated,
    "long line": line(5000),
    "too long": line(10 * 1024 * 1024),
    "exit 127": die(lambda: os._exit(127)),
    "exit 137": die(lambda: os._exit(137)),
    "exit 143": die(lambda: os._exit(143)),
    "exit 1": die(lambda: os._exit(1)),
    "signal TERM": die(lambda: os.kill(os.getpid(), signal.SIGTERM)),
    "signal KILL": die(lambda: os.kill(os.getpid(), signal.SIGKILL)),
    "signal SEGV": die(lambda: os.kill(os.getpid(), signal.SIGSEGV)),
}


def main() -> None:
    """Converse."""
    write("toy agent 0.1\n", sys.stderr)
    conversation = Conversation(json.loads(sys.stdin.readline())["resume"])
    tell("ready")
    prompts: SimpleQueue[str] = SimpleQueue()

    def listen() -> None:
        for text in sys.stdin:
            message = json.loads(text)
            if message["do"] == "prompt":
                prompts.put(message["text"])
            else:
                conversation.heard.put(message)
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        conversation.prompt(prompts.get())


if __name__ == "__main__":
    main()
