"""Recorded exchanges with real agents, played to the adapter's pure part.

In a file a line begins with ``> `` where the client sent it and with ``< `` where the agent did;
``#`` begins a note. What our client sends has to be what was sent then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sortie.acp.client import ClientConnection
from sortie.acp.events import PermissionRequested
from sortie.agents.acp.reader import ReaderContext, UpdateReader
from sortie.agents.acp.settings import AcpSettings
from sortie.agents.acp.usage import NO_COST
from sortie.agents.permissions import PermissionRules
from sortie.json_rpc.connection import ConnectionState
from sortie.json_rpc.events import Initialized, RequestFailed
from sortie.model.turns import (
    AgentEvent,
    Notification,
    PermissionAsked,
    ToolEnded,
    ToolStarted,
    Usage,
)

FOLDER = Path(__file__).with_name("recorded")
RULES = PermissionRules(inside={"default": "allow"})


@dataclass
class PlayedTurn:
    """What was heard of one turn; ``outcome`` is "" where it got no answer."""

    events: list[AgentEvent] = field(default_factory=list)
    outcome: str = ""

    @property
    def messages(self) -> list[str]:
        return [e.message for e in self.events if isinstance(e, Notification)]

    @property
    def tools(self) -> list[tuple[str, str | None, tuple[str, ...], bool]]:
        """Name, kind and files of each tool that ended, and whether it failed."""
        begun = {e.id: e for e in self.events if isinstance(e, ToolStarted)}
        ended = [e for e in self.events if isinstance(e, ToolEnded)]
        assert len(begun) == len(ended)
        return [(begun[e.id].name, begun[e.id].kind, e.locations, e.failed) for e in ended]

    @property
    def permissions(self) -> list[tuple[str, str]]:
        asked = [e for e in self.events if isinstance(e, PermissionAsked)]
        return [(e.question, e.answer) for e in asked]

    @property
    def tokens(self) -> list[tuple[int | None, int | None]]:
        return [(e.input_tokens, e.output_tokens) for e in self._used if e.input_tokens is not None]

    @property
    def costs(self) -> list[float]:
        return [round(e.cost, 6) for e in self._used if e.cost is not None]

    @property
    def share(self) -> float | None:
        """How full the context was when that was told last."""
        told = [e.context_share for e in self._used if e.context_share is not None]
        return told[-1] if told else None

    @property
    def _used(self) -> list[Usage]:
        return [e for e in self.events if isinstance(e, Usage)]


def lines_of(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the direction and the line of each message of a recording."""
    for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").split("\n"):
        if line[:2] in ("> ", "< "):
            yield line[0], line[2:].encode() + b"\n"


def play(name: str, size: int | None = None) -> list[PlayedTurn]:
    """Play a recording, what the agent sent in chunks of a size, and return its turns."""
    player = _Player(size)
    player.is_slow = "-cancel-" in name  # these were made with a client that had not answered yet
    return player.play(name)


class _Player:
    def __init__(self, size: int | None) -> None:
        self.client = ClientConnection()
        self.reader: UpdateReader | None = None
        self.size = size
        self.is_slow = False
        self.turns: list[PlayedTurn] = []
        self.sent: list[dict[str, Any]] = []

    def play(self, name: str) -> list[PlayedTurn]:
        for direction, line in lines_of(name):
            if direction == "<":
                size = self.size or len(line)
                for at in range(0, len(line), size):
                    self.hear(line[at : at + size])
            else:
                self.say(json.loads(line))
            self.take_sent()
        assert self.reader is not None
        self.turns[-1].events += self.reader.end()
        return self.turns

    def take_sent(self) -> None:
        self.sent += [json.loads(each) for each in self.client.data_to_send().splitlines()]

    def say(self, message: dict[str, Any]) -> None:
        """Have our client say what was said then."""
        params = message.get("params", {})
        match message.get("method"):
            case "initialize":
                info = params["clientInfo"]
                self.client.initialize(info["name"], info["title"], info["version"])
            case "session/new":
                self.client.open(params["cwd"])
                assert self.reader is not None
                self.reader.usage.cost = NO_COST
            case "session/load":
                self.client.open(params["cwd"], "session/load", params["sessionId"])
            case "session/prompt":
                if self.client.state is ConnectionState.CANCELLING:
                    return  # our client never asks anew before it has an answer
                assert self.reader is not None
                self.reader.begin()
                self.turns.append(PlayedTurn())
                self.client.prompt(params["prompt"][0]["text"])
            case "session/cancel":
                self.client.cancel()
        self.take_sent()
        assert message in self.sent

    def hear(self, chunk: bytes) -> None:
        """Have our client hear what was heard then."""
        for event in self.client.feed(chunk):
            if isinstance(event, Initialized):
                name = event.result["agentInfo"]["name"]
                self.reader = UpdateReader(
                    ReaderContext(
                        agent=name,
                        workspace="/workspace",
                        settings=AcpSettings(permissions=RULES),
                        now=lambda: datetime(2026, 11, 22, tzinfo=UTC),
                        redacted=str,
                    )
                )
            assert self.reader is not None
            if isinstance(event, PermissionRequested):
                answer, told = self.reader.permit(event)
                if not self.is_slow:
                    self.client.answer_permission(event.id, answer.option_id)
            else:
                assert not isinstance(event, RequestFailed) or event.method == "session/prompt"
                told = self.reader.take(event)
            if self.turns:
                self.turns[-1].events += told
                if self.reader.over is not None and not self.turns[-1].outcome:
                    failure = self.reader.over.failure
                    self.turns[-1].outcome = (
                        f"{failure.kind}: {failure.message}" if failure else "completed"
                    )
            else:
                assert told == []
