"""The folder in which engine v3 keeps a session: ``<workspace>/sess_<id>``.

What the payloads of its messages hold is not documented; their fields are taken by each name
under which they were seen, here or in Kiro's other stores. How full the model's context was is
told apart, after the answer that it is about.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sortie.json_rpc import values
from sortie.kiro.conversations.files import milliseconds, names_in
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)
from sortie.kiro.conversations.session_files import SessionFiles

_SESSION, _MESSAGES = "session.json", "messages.jsonl"


class SessionsV3(SessionFiles):
    """The sessions in ``<sessions>/<workspace>``."""

    ENGINE = "v3"
    KEYS = ("id", "createdAt", "lastModifiedAt")

    def paths(self) -> Iterator[str]:
        """Return the session's file of each session."""
        for workspace in names_in(self._sessions):
            folder = os.path.join(self._sessions, workspace)
            for name in names_in(folder) if workspace != "cli" else ():
                if name.startswith("sess_"):
                    yield os.path.join(folder, name, _SESSION)

    @staticmethod
    def messages_path(path: str) -> str:
        """Return the messages' file of a session."""
        return os.path.join(os.path.dirname(path), _MESSAGES)

    @staticmethod
    def directories(session: Mapping[str, Any]) -> list[str]:
        """Return the directories that a session is about."""
        named = session.get("workspacePaths")
        return [p for p in named if isinstance(p, str)] if isinstance(named, list) else []

    @staticmethod
    def conversation(
        session: Mapping[str, Any],
        messages: Iterable[Mapping[str, Any]],
        summary: ConversationSummary,
    ) -> Conversation:
        """Return a session from what its two files hold."""
        model, lines = values.text(session, "modelId"), list(messages)
        pairs = [(n, record) for n, line in enumerate(lines) for record in _records(line, model)]
        return Conversation(
            summary=summary,
            records=tuple(_with_shares(lines, pairs)),
            entry_of=tuple(n for n, _ in pairs),
            entries=len(lines),
            usages=tuple(_usages(lines, model)),
        )

    def delete(self, summary: ConversationSummary) -> None:
        """Delete a session's folder. Raises ConversationError where it stays."""
        try:
            shutil.rmtree(os.path.dirname(summary.place))
        except FileNotFoundError:
            return
        except OSError as exc:
            raise ConversationError(f"{summary.place} cannot be deleted: {exc.strerror}") from exc


def _with_shares(
    lines: Sequence[Mapping[str, Any]], pairs: Sequence[tuple[int, Record]]
) -> list[Record]:
    """Return the records; each answer gets the context share of the message behind it."""
    records = [record for _, record in pairs]
    at = 0
    last: int | None = None
    for number, line in enumerate(lines):
        while at < len(pairs) and pairs[at][0] <= number:
            last = at if isinstance(records[at], ModelAnswer) else last
            at += 1
        payload = values.mapping(line, "payload")
        if payload.get("type") != "session_metadata" or payload.get("key") != "contextUsage":
            continue
        answer = None if last is None else records[last]
        if last is not None and isinstance(answer, ModelAnswer):
            share = values.amount(payload, "value", "usagePercentage")
            records[last] = replace(answer, context_share=share)
    return records


def _records(line: Mapping[str, Any], model: str | None) -> Iterator[Record]:
    payload = values.mapping(line, "payload")
    at = milliseconds(line.get("timestamp"))
    match payload.get("type"):
        case "user":
            yield UserPrompt(text=_text(payload), at=at)
        case "assistant":
            identity = _first(payload, "messageId", "message_id", "id")
            used_model = _first(payload, "modelId", "model") or model
            yield ModelAnswer(text=_text(payload), message_id=identity, model=used_model, at=at)
        case "tool_call":
            used = _first(payload, "toolUseId", "tool_use_id", "toolCallId", "id")
            if used is not None:
                name = _first(payload, "name", "toolName") or ""
                args = values.mapping(payload, "input") or values.mapping(payload, "args")
                yield ToolUse(id=used, name=name, input=args, at=at)
        case "tool_result":
            used = _first(payload, "toolUseId", "tool_use_id", "toolCallId", "id")
            if used is not None:
                yield ToolResult(
                    tool_use_id=used, text=_text(payload), succeeded=_succeeded(payload), at=at
                )
        case "interaction_resolved" if payload.get("outcome") == "cancelled":
            used = _first(payload, "toolCallId")
            if used is not None:
                yield ToolUsesCancelled(tool_use_ids=(used,), at=at)
        case _:
            pass


def _succeeded(payload: Mapping[str, Any]) -> bool | None:
    for key, yes in (("success", True), ("isError", False), ("is_error", False)):
        if isinstance(payload.get(key), bool):
            return bool(payload[key] is yes)
    status = (values.text(payload, "status") or "").lower()
    return {"success": True, "completed": True, "error": False, "failed": False}.get(status)


def _first(payload: Mapping[str, Any], *names: str) -> str | None:
    return next((t for name in names if (t := values.text(payload, name)) is not None), None)


def _text(payload: Mapping[str, Any]) -> str:
    """Return the text of a payload: a text itself, or blocks that hold one."""
    found = next((payload[k] for k in ("content", "text", "message") if k in payload), "")
    if isinstance(found, str):
        return found
    blocks = values.items(found)
    told = (values.text(block, "text") or values.text(block, "data") for block in blocks)
    return "\n".join(text for text in told if text)


def _usages(lines: list[Mapping[str, Any]], model: str | None) -> Iterator[KiroUsage]:
    for line in lines:
        payload = values.mapping(line, "payload")
        if payload.get("type") != "usage_summary":
            continue
        metered = [
            values.amount(usage, "usage" if "usage" in usage else "value")
            for key in ("promptTurnSummaries", "usage", "meteringUsage", "metering_usage")
            for usage in values.items(payload, key)
            if values.text(usage, "unit") in ("credit", "credits")
        ]
        told = [amount for amount in [*metered, values.amount(payload, "credits")] if amount]
        yield KiroUsage(credits=sum(told) if told else None, model=model)
