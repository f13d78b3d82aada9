#!/usr/bin/env python3
"""A toy of an agent: JSON lines both ways, one conversation until the end of its stdin.

It is told ``hello`` (with an id to resume, or null), then ``prompt``, ``answer`` and ``cancel``.
Words in a prompt say what it does; DEEDS lists them.
"""

from __future__ import annotations

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
        tell("say", text=f"prompt {len(self.prompts())}")
        deeds = (deed for word, deed in DEEDS.items() if f"toy: {word}" in text)
        failure = next(deeds, fine)(self)
        self.used += len(text)
        tell("usage", input=self.used, cost=self.used / 1000)
        resets = "2030-01-01T00:00:00+00:00" if failure == "limit" else None
        tell("done", ok=failure is None, why=failure, resets=resets)

    def prompts(self) -> list[str]:
        """Return all prompts of the conversation."""
        return [json.loads(line) for line in (STORE / self.id).read_text().splitlines()]

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
    """Hear nothing any more, not even SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    tell("say", text="I hear nothing")
    time.sleep(600)


def talk(_: Conversation) -> None:
    """Say something for ever."""
    while True:
        tell("say", text="and another thing")
        time.sleep(0.05)


def limit(_: Conversation) -> str:
    """Fail because the provider gives no more for now."""
    return "limit"


def recall(conversation: Conversation) -> None:
    """Say what the first prompt was."""
    tell("say", text=f"you began with {conversation.prompts()[0]}")


def child(*, orphan: bool = False, holds: bool = False) -> int:
    """Run a process that does not end, in a session of its own."""
    script = "sleep 600 & exit 0" if orphan else "exec sleep 600"
    output = None if holds else subprocess.DEVNULL
    return subprocess.Popen(
        ["/bin/sh", "-c", script], start_new_session=True, stdout=output, stderr=output
    ).pid


def tool(*, orphan: bool = False) -> Deed:
    """Use a tool that does not end."""

    def use(conversation: Conversation) -> str:
        tell("tool", id="t2", name="shell", kind="execute", files=[])
        child(orphan=orphan)
        return conversation.hang()

    return use


def leave(*, holds: bool = False) -> Deed:
    """Leave a process behind, and work on for a second."""

    def deed(_: Conversation) -> None:
        child(holds=holds)
        time.sleep(1)

    return deed


def junk(_: Conversation) -> None:
    """Write what is no message."""
    for text in (
        "",
        "null",
        "[]",
        "7",
        '"say"',
        "{",
        "nan",
        "[" * 5000,
        '{"is": []}',
        '{"is": "x"}',
    ):
        write(f"{text}\n")
    sys.stdout.buffer.write(b'\xff\xfe\x00{"is": "say"}\n\r\n')
    for message in ({"is": "say"}, {"is": "say", "text": None}, {"is": "say", "text": ""}):
        write(json.dumps(message) + "\n")
    for message in ({"is": "usage", "input": "many", "cost": 1}, {"is": "tool", "id": 1}):
        write(json.dumps(message) + "\n")


def unknown(_: Conversation) -> None:
    """Send what a later version may send."""
    tell("dream", of="sheep")
    tell("say", text="hello", mood={"good": True}, more=[None])


def repeated(_: Conversation) -> None:
    """Use the same id again, and end what has not begun."""
    for _again in range(2):
        tell("tool", id="t9", name="shell", kind="execute", files=[])
        tell("tool_done", id="t9", failed=False)
        tell("tool_done", id="t9", failed=True)


def unasked(_: Conversation) -> None:
    """Answer what nobody asked."""
    tell("ready")
    tell("tool_done", id="never", failed=False)


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
    "talk": talk,
    "limit": limit,
    "recall": recall,
    "tool": tool(),
    "orphan": tool(orphan=True),
    "leave": leave(),
    "hold": leave(holds=True),
    "junk": junk,
    "unknown": unknown,
    "repeated": repeated,
    "unasked": unasked,
    "exit 0": die(lambda: os._exit(0)),
    "secret": secret,
    "noise": noise,
    "unterminated": unterminated,
    "long line": line(5000),
    "megabyte": line(1024 * 1024),
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
