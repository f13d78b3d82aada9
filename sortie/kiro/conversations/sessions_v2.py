"""The two files in which engine v2 keeps a session: ``<id>.json`` and ``<id>.jsonl``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from sortie.json_rpc import values
from sortie.kiro.conversations.files import milliseconds, names_in
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    HistoryCleared,
    HistoryCompacted,
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    UserPrompt,
)
from sortie.kiro.conversations.session_files import SessionFiles


class SessionsV2(SessionFiles):
    """The sessions in ``<sessions>/cli``."""

    ENGINE = "v2"
    KEYS = ("session_id", "created_at", "updated_at")

    def paths(self) -> Iterator[str]:
        """Return the session's file of each session."""
        folder = os.path.join(self._sessions, "cli")
        return (os.path.join(folder, n) for n in names_in(folder) if n.endswith(".json"))

    @staticmethod
    def messages_path(path: str) -> str:
        """Return the messages' file of a session."""
        return f"{path}l"

    @staticmethod
    def directories(session: Mapping[str, Any]) -> list[str]:
        """Return the directory that a session is about."""
        return [directory] if (directory := values.text(session, "cwd")) else []

    @staticmethod
    def conversation(
        session: Mapping[str, Any],
        messages: Iterable[Mapping[str, Any]],
        summary: ConversationSummary,
    ) -> Conversation:
        """Return a session from what its two files hold."""
        lines = list(messages)
        usages = tuple(_usages(session))
        model = next((u.model for u in reversed(usages) if u.model is not None), None)
        pairs = [(n, record) for n, line in enumerate(lines) for record in _records(line, model)]
        return Conversation(
            summary=summary,
            records=tuple(_with_shares(session, [record for _, record in pairs])),
            entry_of=tuple(n for n, _ in pairs),
            entries=len(lines),
            usages=usages,
        )

    def delete(self, summary: ConversationSummary) -> None:
        """Delete a session's files. Raises ConversationError where they stay."""
        try:
            for path in (summary.place, self.messages_path(summary.place)):
                with suppress(FileNotFoundError):
                    os.unlink(path)
        except OSError as exc:
            raise ConversationError(f"{summary.place} cannot be deleted: {exc.strerror}") from exc


def _with_shares(session: Mapping[str, Any], records: list[Record]) -> list[Record]:
    """Return the records, the last answer to each prompt with how full the context was then.

    The session tells that for each prompt of its life. Where its history was cut they cannot be
    matched, and nothing is told.
    """
    metadata = values.mapping(session, "session_state", "conversation_metadata")
    turns = values.items(metadata, "user_turn_metadatas")
    begins = [at for at, record in enumerate(records) if isinstance(record, UserPrompt)]
    if len(turns) != len(begins):
        return records
    ends = [*begins[1:], len(records)][: len(begins)]
    for turn, begin, end in zip(turns, begins, ends, strict=True):
        answers = [at for at in range(begin, end) if isinstance(records[at], ModelAnswer)]
        answer = records[answers[-1]] if answers else None
        if isinstance(answer, ModelAnswer):
            share = values.amount(turn, "context_usage_percentage")
            records[answers[-1]] = replace(answer, context_share=share)
    return records


def _usages(session: Mapping[str, Any]) -> Iterator[KiroUsage]:
    conversation = values.mapping(session, "session_state", "conversation_metadata")
    for turn in values.items(conversation, "user_turn_metadatas"):
        spent = [
            values.amount(usage, "value")
            for usage in values.items(turn, "metering_usage")
            if values.text(usage, "unit") in ("credit", "credits")
        ]
        told = [amount for amount in spent if amount is not None]
        # Kiro counts no tokens under an API key and writes 0 then.
        yield KiroUsage(
            credits=sum(told) if told else None,
            input_tokens=values.count(turn, "input_token_count") or None,
            output_tokens=values.count(turn, "output_token_count") or None,
            model=values.text(turn, "model"),
        )


def _records(line: Mapping[str, Any], model: str | None) -> Iterator[Record]:
    data = values.mapping(line, "data")
    at = milliseconds(values.mapping(data, "meta").get("timestamp"))
    content = values.items(data, "content")
    match line.get("kind"):
        case "Prompt":
            yield UserPrompt(text=_text(content), at=at)
        case "AssistantMessage":
            identity = values.text(data, "message_id")
            yield ModelAnswer(text=_text(content), message_id=identity, model=model, at=at)
            for use in _of_kind(content, "toolUse"):
                if (used := values.text(use, "toolUseId")) is not None:
                    name = values.text(use, "name") or ""
                    yield ToolUse(id=used, name=name, input=values.mapping(use, "input"), at=at)
        case "ToolResults":
            for result in _of_kind(content, "toolResult"):
                if (used := values.text(result, "toolUseId")) is not None:
                    yield _result(used, result, at)
        case "Clear":
            yield HistoryCleared()
        case "Compaction":
            yield HistoryCompacted()
        case _:
            pass


def _result(used: str, result: Mapping[str, Any], at: int | None) -> ToolResult:
    content = values.items(result, "content")
    texts = [_text([block]) or values.text(block, "text") or _json(block) for block in content]
    status = (values.text(result, "status") or "").lower()
    return ToolResult(
        tool_use_id=used,
        text="\n".join(text for text in texts if text),
        succeeded={"success": True, "error": False}.get(status),
        at=at,
    )


def _json(block: Mapping[str, Any]) -> str:
    return json.dumps(block["data"], ensure_ascii=False) if block.get("kind") == "json" else ""


def _text(content: Sequence[Mapping[str, Any]]) -> str:
    told = (block.get("data") for block in content if block.get("kind") == "text")
    return "".join(text for text in told if isinstance(text, str))


def _of_kind(content: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    return (values.mapping(block, "data") for block in content if block.get("kind") == kind)
