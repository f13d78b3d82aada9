"""Whether a turn with the stop reason ``end_turn`` has succeeded; pure.

The stop reason alone proves nothing: some agents give it although all model calls have failed, or
although they gave up because a permission was denied.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.agents.exits import Failure
from sortie.json_rpc import values
from sortie.model import ErrorKind

INJECTED = ("Info: ", "Error: ", "Warning: ", "Config warning", "[MODE_UPDATE]")
"""How texts begin that agents put among the model's own words."""

_ERROR = "Error: "
_CODEX = "@agentclientprotocol/codex-acp"
_TRUSTED = frozenset({"OpenCode", "gemini-cli", "@agentclientprotocol/claude-agent-acp", _CODEX})
"""Agents whose ``end_turn`` means that the model has answered; failures are reported otherwise."""

_STOPS = {
    "refusal": "the model refused to go on (refusal)",
    "max_tokens": "the answer was cut at the model's limit (max_tokens)",
    "max_turn_requests": "the agent has asked its model too often in one turn (max_turn_requests)",
    "": "the agent gave no reason for the end of its turn",
}


class TurnEvidence:
    """What speaks for and against a turn, while it goes on."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._piece = ""
        self._saw_words = False
        self._used_tools = False
        self._broken = False
        self._denied: str | None = None

    def text(self, piece: str) -> None:
        """Take a piece of a message; it is what the agent says of itself where it says so."""
        if not piece.strip():
            return
        self._piece = piece.strip()
        if not self._piece.startswith(INJECTED):
            self._denied, self._saw_words = None, True

    def tool_ended(self, *, failed: bool) -> None:
        """Take the end of a tool."""
        self._used_tools = self._used_tools or not failed
        if not failed:
            self._denied = None

    def denied(self, what: str) -> None:
        """Take a permission that was denied."""
        self._denied = what

    def info(self, update: Mapping[str, Any]) -> None:
        """Take a ``session_info_update``, in which codex reports the state of its thread."""
        status = values.text(update, "_meta", "codex", "threadStatus", "type")
        if status is not None:
            self._broken = self._broken or status == "systemError"

    def failure(self, stop_reason: str, *, used_tokens: bool) -> Failure | None:
        """Return why the turn failed that ended for a reason; None: it is a good one."""
        if self._denied is not None and stop_reason in ("end_turn", "cancelled"):
            message = f"the agent ended its turn after a permission was denied: {self._denied}"
            return Failure(ErrorKind.TURN_FAILED, message)
        if stop_reason == "cancelled":
            message = "the agent says that the turn was cancelled"
            return Failure(ErrorKind.TURN_CANCELLED, message)
        if stop_reason != "end_turn":
            message = _STOPS.get(stop_reason, f"the agent ended the turn: {stop_reason}")
            return Failure(ErrorKind.TURN_FAILED, message)
        if self._broken:
            return Failure(ErrorKind.TURN_FAILED, self._piece or "the agent's model has failed")
        if self._agent in _TRUSTED:
            return None
        if self._piece.startswith(_ERROR):
            return Failure(ErrorKind.TURN_FAILED, self._piece)
        if used_tokens or self._used_tools or self._saw_words:
            return None
        message = self._piece or "the agent ended its turn and has done nothing in it"
        return Failure(ErrorKind.TURN_FAILED, message)
