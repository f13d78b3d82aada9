"""The document that engine v1 keeps of a conversation, as records."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sortie.json_rpc import values
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationSummary,
    KiroUsage,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
)


def read_document(document: Mapping[str, Any], summary: ConversationSummary) -> Conversation:
    """Return a conversation from the document of its row; what is not understood is left out."""
    history = _list(document.get("history"))
    pairs = [(n, record) for n, entry in enumerate(history) for record in _records(entry)]
    return Conversation(
        summary=summary,
        records=tuple(record for _, record in pairs),
        entry_of=tuple(n for n, _ in pairs),
        entries=len(history),
        usages=tuple(_usages(document)),
    )


def last_change(document: Mapping[str, Any]) -> int | None:
    """Return when the last answer of a document ended, in milliseconds."""
    for entry in reversed(_list(document.get("history"))):
        metadata = values.mapping(entry, "request_metadata")
        ended = values.count(metadata, "stream_end_timestamp_ms")
        if ended is not None:
            return ended
    return None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _records(entry: object) -> Iterator[Record]:
    metadata = values.mapping(entry, "request_metadata")
    began = values.count(metadata, "request_start_timestamp_ms")
    ended = values.count(metadata, "stream_end_timestamp_ms")
    yield from _said_by_user(values.mapping(entry, "user", "content"), began)
    yield from _said_by_model(values.mapping(entry, "assistant"), metadata, ended)


def _said_by_user(content: Mapping[str, Any], at: int | None) -> Iterator[Record]:
    prompt = values.mapping(content, "Prompt").get("prompt")
    if isinstance(prompt, str):
        yield UserPrompt(text=prompt, at=at)
    yield from _results(values.items(content, "ToolUseResults", "tool_use_results"), at)
    if isinstance(content.get("CancelledToolUses"), dict):
        cancelled = values.items(content, "CancelledToolUses", "tool_use_results")
        ids = (values.text(result, "tool_use_id") for result in cancelled)
        yield ToolUsesCancelled(
            tool_use_ids=tuple(i for i in ids if i is not None),
            prompt=values.text(content, "CancelledToolUses", "prompt"),
            at=at,
        )


def _results(results: Any, at: int | None) -> Iterator[Record]:
    for result in results:
        used = values.text(result, "tool_use_id")
        if used is not None:
            yield ToolResult(
                tool_use_id=used,
                text="\n".join(_texts(result)),
                succeeded={"success": True, "error": False}.get(
                    (values.text(result, "status") or "").lower()
                ),
                at=at,
            )


def _texts(result: Mapping[str, Any]) -> Iterator[str]:
    for block in values.items(result, "content"):
        if isinstance(block.get("Text"), str):
            yield block["Text"]
        elif "Json" in block:
            yield json.dumps(block["Json"], ensure_ascii=False)


def _said_by_model(
    assistant: Mapping[str, Any], metadata: Mapping[str, Any], at: int | None
) -> Iterator[Record]:
    kind = next((k for k in ("Response", "ToolUse") if isinstance(assistant.get(k), dict)), None)
    if kind is None:
        return
    said = values.mapping(assistant, kind)
    yield ModelAnswer(
        text=values.text(said, "content") or "",
        message_id=values.text(said, "message_id"),
        model=values.text(metadata, "model_id"),
        context_share=values.amount(metadata, "context_usage_percentage"),
        at=at,
    )
    for use in values.items(said, "tool_uses"):
        identity = values.text(use, "id")
        if identity is not None:
            name = values.text(use, "name") or values.text(use, "orig_name") or ""
            args = values.mapping(use, "args") or values.mapping(use, "orig_args")
            yield ToolUse(id=identity, name=name, input=args, at=at)


def _usages(document: Mapping[str, Any]) -> Iterator[KiroUsage]:
    model = values.text(document, "model_info", "model_id")
    for usage in values.items(document, "user_turn_metadata", "usage_info"):
        if values.text(usage, "unit") in ("credit", "credits"):
            yield KiroUsage(credits=values.amount(usage, "value"), model=model)
