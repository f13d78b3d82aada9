"""The tools of a run as a test has them: what is called is noted, and clients are real."""

from __future__ import annotations

import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from sortie.facts import Fact
from sortie.model.tools import ToolName
from sortie.telemetry import facts
from sortie.tools import Answer
from sortie.tools.arguments import Ask, SetStatus
from sortie.tools.calls import ToolCalls
from sortie.tools.channel import ToolChannel, ToolPlace, tool_channel
from sortie.transports.local import LocalTransport
from tests.run_ids import own_run_id

RUN = own_run_id("run-of-tools")
TOKEN = "0123456789abcdef" * 4
LIMIT = 60.0
"""Seconds after which something awaited has gone wrong."""

GREETING = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class NotedTools:
    """Tools that note what is asked; see RunTools. ``hold`` keeps answers of ``issue`` back."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.hold: trio.Event | None = None
        self.open = 0
        self.most_open = 0
        self.answer: dict[str, Any] = {"identifier": "A-1"}
        self.error: Exception | None = None

    async def issue(self) -> Answer:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.hold is not None:
                await self.hold.wait()
            await trio.lowlevel.checkpoint()
        finally:
            self.open -= 1
        if self.error is not None:
            raise self.error
        return self.answer

    async def comment(self, text: str) -> Answer:
        self.said.append(text)
        return {"comments_left": 9}

    async def set_status(self, status: SetStatus) -> Answer:
        self.said.append(status)
        return {}

    async def ask(self, question: Ask) -> Answer:
        self.said.append(question)
        return {}

    async def note(self, text: str) -> Answer:
        self.said.append(text)
        return {}

    async def budget(self) -> Answer:
        return {"turn": 1, "seconds_left_in_turn": None}

    async def history(self) -> Answer:
        return {"runs": []}

    async def pull_request(self) -> Answer:
        return {}


class ToolRig:
    """A channel in a workspace of its own."""

    def __init__(self, workspace: Path, names: Sequence[ToolName] = tuple(ToolName)) -> None:
        self.workspace = workspace
        self.folder = workspace / ".sortie" / "tools"
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.tools = NotedTools()
        self.facts: list[Fact] = []
        self.calls = ToolCalls(RUN, names, self.tools, self.facts.append, lambda text: text)

    def of(self, kind: type[Fact]) -> list[Any]:
        """Return the facts of a kind."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    @asynccontextmanager
    async def channel(
        self, token: str = TOKEN, path: str = "/usr/bin:/bin"
    ) -> AsyncIterator[ToolChannel | None]:
        """Have the channel, on this machine."""
        place = ToolPlace(
            run_id=RUN,
            workspace=str(self.workspace),
            transport=LocalTransport(),
            env={"PATH": path, "SORTIE_RUN_ID": RUN},
            token=token,
        )
        async with tool_channel(place, self.calls, self.facts.append) as channel:
            yield channel

    async def next_connection(self) -> Path:
        """Wait until a program waits for the next client, and return the end that it reads."""
        with trio.fail_after(LIMIT):
            while not (ends := sorted(self.folder.glob("[0-9]*/in"))):
                await trio.sleep(0.01)
        return ends[0]

    async def until_lost(self) -> list[str]:
        """Wait until a client is told to be lost, and return why."""
        with trio.fail_after(LIMIT):
            while not (lost := self.of(facts.ToolClientLost)):
                await trio.sleep(0.01)
        return [fact.reason for fact in lost]


class ToolClient:
    """A client as an agent starts it."""

    def __init__(self, process: trio.Process) -> None:
        self.process = process
        self._buffer = b""
        self._count = 0

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path, *, greet: bool = True) -> AsyncIterator[ToolClient]:
        """Start one, and end it with the block."""
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(
                lambda task_status: trio.run_process(
                    ["/bin/sh", str(folder / "connect.sh")],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    check=False,
                    task_status=task_status,
                )
            )
            client = cls(process)
            with trio.fail_after(LIMIT):
                if greet:
                    await client.ask("initialize", GREETING)
                    await client.tell("notifications/initialized")
                yield client
                await client.close()
                await process.wait()

    async def send(self, data: bytes) -> None:
        """Write bytes to its stdin."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(data)

    async def close(self) -> None:
        """End its stdin."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()

    async def tell(self, method: str, params: Any = None) -> None:
        """Send a notification."""
        told = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        await self.send(json.dumps(told).encode() + b"\n")

    async def request(self, method: str, params: Any) -> int:
        """Send a request and return its id."""
        self._count += 1
        asked = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        await self.send(json.dumps(asked).encode() + b"\n")
        return self._count

    async def ask(self, method: str, params: Any) -> Any:
        """Return the answer to a request; nothing else comes meanwhile."""
        number = await self.request(method, params)
        answer = await self.line()
        assert answer["id"] == number
        return answer.get("result", answer)

    async def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        """Return what a tool answers, and whether that is an error."""
        result = await self.ask("tools/call", {"name": name, "arguments": arguments})
        return result["content"][0]["text"], result["isError"]

    async def line(self) -> Any:
        """Return the next line that comes back."""
        while b"\n" not in self._buffer:
            assert self.process.stdout is not None
            chunk = await self.process.stdout.receive_some()
            assert chunk, "the client has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)
