"""What a scripted model answers, in the formats of several providers; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """A tool that the model asks for; ``namespace`` is where Responses has tools of servers.

    ``script`` is the input of a custom tool there, which is no JSON.
    """

    name: str
    input: Mapping[str, Json] = field(default_factory=dict)
    namespace: str | None = None
    script: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer of the model: text in so many ``chunks``, tools, or an error.

    ``status`` is an HTTP error with a type and a message. ``hang`` accepts the request and is
    silent for so many seconds, after which the connection is closed; ``delay`` is before the
    answer, ``pause`` behind each chunk of text. ``cut_after`` so many chunks the connection is
    closed; ``stream_error`` is an error in the middle of the stream.
    """

    text: str = ""
    thinking: str = ""
    tools: tuple[ToolUse, ...] = ()
    chunks: int = 3
    pause: float = 0.0
    delay: float = 0.0
    hang: float | None = None
    input_tokens: int = 100
    output_tokens: int = 20
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    stop: str | None = None
    status: int | None = None
    error: str = "api_error"
    message: str = "scripted error"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    stream_error: str | None = None


def tool(name: str, text: str = "", **values: Json) -> Answer:
    """Return an answer that asks for one tool."""
    return Answer(text=text, tools=(ToolUse(name=name, input=values),))


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event; ``is_text`` where it carries a chunk of the answer's text."""

    data: Json
    name: str | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """An answer in a provider's format: ``whole``, or as a stream of events."""

    whole: Json
    events: Iterator[Event]


def _id(prefix: str) -> str:
    return f"{prefix}{uuid4().hex[:16]}"


def _pieces(text: str, count: int) -> list[str]:
    size = -(-len(text) // max(1, count)) or 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def anthropic(body: Json, answer: Answer) -> Message:
    """Answer ``POST /v1/messages``."""
    blocks: list[Json] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": "c2ln"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for use in answer.tools:
        block = {"type": "tool_use", "id": _id("toolu_"), "name": use.name}
        blocks.append(block | {"input": dict(use.input)})
    usage = {
        "input_tokens": answer.input_tokens,
        "cache_creation_input_tokens": answer.cache_write_tokens,
        "cache_read_input_tokens": answer.cache_read_tokens,
        "output_tokens": answer.output_tokens,
        "service_tier": "standard",
    }
    message = {
        "id": _id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": blocks,
        "stop_reason": answer.stop or ("tool_use" if answer.tools else "end_turn"),
        "stop_sequence": None,
        "usage": usage,
    }
    return Message(message, _anthropic_events(message, answer))


def _anthropic_events(message: Json, answer: Answer) -> Iterator[Event]:
    def event(kind: str, *, is_text: bool = False, **values: Json) -> Event:
        return Event({"type": kind} | values, kind, is_text)

    began = {"content": [], "stop_reason": None, "usage": message["usage"] | {"output_tokens": 1}}
    yield event("message_start", message=message | began)
    yield event("ping")
    for index, block in enumerate(message["content"]):
        empty: dict[str, Json]
        match block["type"]:
            case "text":
                empty, deltas = {"text": ""}, _pieces(answer.text, answer.chunks)
                told = [{"type": "text_delta", "text": piece} for piece in deltas]
            case "thinking":
                empty = {"thinking": "", "signature": ""}
                told = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case _:
                empty, deltas = {"input": {}}, _pieces(json.dumps(block["input"]), 3)
                told = [{"type": "input_json_delta", "partial_json": piece} for piece in deltas]
        yield event("content_block_start", index=index, content_block=block | empty)
        for delta in told:
            is_text = block["type"] == "text"
            yield event("content_block_delta", index=index, delta=delta, is_text=is_text)
        if block["type"] == "text" and answer.stream_error:
            yield event("error", error={"type": answer.stream_error, "message": answer.message})
            return
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": answer.output_tokens})
    yield event("message_stop")


def chat_completions(body: Json, answer: Answer) -> Message:
    """Answer OpenAI's ``POST /v1/chat/completions``."""
    calls = [
        {
            "index": index,
            "id": _id("call_"),
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(dict(use.input))},
        }
        for index, use in enumerate(answer.tools)
    ]
    base = {"id": _id("chatcmpl-"), "created": 1700000000, "model": body.get("model")}
    stop = answer.stop or ("tool_calls" if calls else "stop")
    usage = {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    said: Json = {"role": "assistant", "content": answer.text or None}
    said |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": said, "finish_reason": stop}
    whole = base | {"object": "chat.completion", "choices": [choice], "usage": usage}

    def events() -> Iterator[Event]:
        def chunk(delta: Json, end: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "finish_reason": end}
            return base | {"object": "chat.completion.chunk", "choices": [choice]}

        yield Event(chunk({"role": "assistant", "content": ""}))
        if answer.thinking:
            yield Event(chunk({"reasoning_content": answer.thinking}))
        for piece in _pieces(answer.text, answer.chunks):
            yield Event(chunk({"content": piece}), is_text=True)
        for call in calls:
            yield Event(chunk({"tool_calls": [call]}))
        yield Event(chunk({}, stop))
        yield Event(base | {"object": "chat.completion.chunk", "choices": [], "usage": usage})
        yield Event("[DONE]")

    return Message(whole, events())


def responses(body: Json, answer: Answer) -> Message:
    """Answer OpenAI's ``POST /v1/responses``."""
    items: list[Json] = []
    if answer.thinking:
        summary = [{"type": "summary_text", "text": answer.thinking}]
        items.append({"type": "reasoning", "id": _id("rs_"), "summary": summary})
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        message = {"type": "message", "id": _id("msg_"), "role": "assistant"}
        items.append(message | {"status": "completed", "content": content})
    for use in answer.tools:
        call = {"type": "function_call", "id": _id("fc_"), "call_id": _id("call_")}
        call |= {"name": use.name, "status": "completed"}
        call |= {"namespace": use.namespace} if use.namespace else {}
        if use.script is None:
            items.append(call | {"arguments": json.dumps(dict(use.input))})
        else:
            items.append(call | {"type": "custom_tool_call", "input": use.script})
    cached = {"cached_tokens": answer.cache_read_tokens}
    whole = {
        "id": _id("resp_"),
        "object": "response",
        "created_at": 1700000000,
        "status": "completed",
        "model": body.get("model"),
        "output": items,
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": cached,
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
        "error": None,
        "incomplete_details": None,
    }
    return Message(whole, _numbered(_response_events(whole, answer)))


def _response_events(whole: Json, answer: Answer) -> Iterator[Event]:
    def event(kind: str, *, is_text: bool = False, **values: Json) -> Event:
        return Event({"type": kind} | values, kind, is_text)

    began = whole | {"status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=began)
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty: Json = {"content": []} if item["type"] == "message" else {}
        begun = item | {"status": "in_progress"} | empty
        yield event("response.output_item.added", output_index=index, item=begun)
        if item["type"] == "message":
            for piece in _pieces(answer.text, answer.chunks):
                kind = "response.output_text.delta"
                yield event(kind, is_text=True, content_index=0, delta=piece, **at)
        elif item["type"] == "function_call":
            kind = "response.function_call_arguments.delta"
            yield event(kind, delta=item["arguments"], **at)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


def _numbered(events: Iterator[Event]) -> Iterator[Event]:
    for number, event in enumerate(events):
        yield Event(event.data | {"sequence_number": number}, event.name, event.is_text)


def gemini(_body: Json, answer: Answer) -> Message:
    """Answer Gemini's ``:generateContent`` and ``:streamGenerateContent``."""
    usage = {
        "promptTokenCount": answer.input_tokens,
        "candidatesTokenCount": answer.output_tokens,
        "totalTokenCount": answer.input_tokens + answer.output_tokens,
    }
    stop = answer.stop or "STOP"
    calls = [{"functionCall": {"name": use.name, "args": dict(use.input)}} for use in answer.tools]

    def told(parts: list[Json], end: str | None = None) -> Json:
        candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
        candidate |= {"finishReason": end} if end else {}
        return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}

    def events() -> Iterator[Event]:
        if answer.thinking:
            yield Event(told([{"text": answer.thinking, "thought": True}]))
        for piece in _pieces(answer.text, answer.chunks):
            yield Event(told([{"text": piece}]), is_text=True)
        if calls:
            yield Event(told(calls))
        yield Event(told([{"text": ""}], stop))

    text = [{"text": answer.text}] if answer.text else []
    return Message(told([*text, *calls], stop), events())
