"""The span of a turn, and those within it: answers of the model, and uses of tools."""

from __future__ import annotations

import json
from collections.abc import Callable

from sortie.telemetry import facts
from sortie.telemetry.traces.spans import AddSpan, OpenSpan, Value

TOOLS_AT_ONCE = 1000
"""Uses of tools under way in a turn that are remembered; others have a span once they are over."""


class TurnSpans:
    """A turn under way; ``span_id`` makes the ids of the spans in it."""

    def __init__(
        self,
        span: OpenSpan,
        trace_id: int,
        span_id: Callable[[], int],
        add: AddSpan,
        *,
        content: bool,
    ) -> None:
        self.span = span
        self._trace_id = trace_id
        self._span_id = span_id
        self._add = add
        self._content = content
        self._tools: dict[str, OpenSpan] = {}
        self._used: dict[str, int] = {}

    def end(self, now: int) -> None:
        """End the turn, and the tools whose end was not told."""
        for tool in self._tools.values():
            tool.attributes["sortie.unfinished"] = True
            self._add(tool.over(self._trace_id, now))
        self._tools.clear()
        self.span.attributes |= self._used
        self._add(self.span.over(self._trace_id, now))

    def told(self, prompt: str | None) -> None:
        """Have the prompt in the span, where it is wanted."""
        if prompt is not None and self._content:
            self.span.attributes["gen_ai.input.messages"] = _message("user", prompt)

    def answered(self, answer: str | None) -> None:
        """Have the last answer in the span, where it is wanted."""
        if answer is not None and self._content:
            self.span.attributes["gen_ai.output.messages"] = _message("assistant", answer)

    def uses(self, fact: facts.ToolCallStarted, now: int) -> None:
        """Begin the use of a tool."""
        if fact.call and len(self._tools) < TOOLS_AT_ONCE:
            self._tools[fact.call] = self._tool(fact, now)

    def used(self, fact: facts.ToolCallEnded, now: int) -> None:
        """End the use of a tool; one whose start was not told began as long ago as it took."""
        tool = self._tools.pop(fact.call, None)
        if tool is None:
            began = max(self.span.start, now - round(fact.seconds * 1e9))
            tool = self._tool(fact, began)
        tool.attributes["sortie.tool.status"] = "failed" if fact.failed else "completed"
        if fact.failed:
            tool.error = "tool_failed"
        if self._content:
            tool.attributes |= {
                "gen_ai.tool.call.arguments": fact.about,
                "gen_ai.tool.call.result": fact.error or fact.output,
            }
        self._add(tool.over(self._trace_id, now))

    def _tool(self, fact: facts.ToolCallStarted | facts.ToolCallEnded, began: int) -> OpenSpan:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": fact.tool or None,
            "gen_ai.tool.call.id": fact.call or None,
            "sortie.tool.kind": fact.kind,
        }
        if self._content:
            attributes["sortie.tool.locations"] = fact.locations
        return OpenSpan(
            name=f"execute_tool {fact.tool}".rstrip(),
            span_id=self._span_id(),
            parent_id=self.span.span_id,
            start=began,
            attributes=attributes,
        )

    def model_answered(self, fact: facts.ModelAnswerTimed, now: int) -> None:
        """Add a request to the model, which was answered just now."""
        self._model(fact.model)
        span = OpenSpan(
            name=f"chat {fact.model or ''}".rstrip(),
            span_id=self._span_id(),
            parent_id=self.span.span_id,
            start=max(self.span.start, now - round(fact.seconds * 1e9)),
            kind="client",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self.span.attributes["gen_ai.provider.name"],
                "gen_ai.request.model": fact.model,
                "gen_ai.response.model": fact.model,
            },
        )
        self._add(span.over(self._trace_id, now))

    def consumed(self, fact: facts.AgentUsed) -> None:
        """Add up what the turn has used."""
        self._model(fact.model)
        told = {
            "gen_ai.usage.input_tokens": fact.input_tokens,
            "gen_ai.usage.output_tokens": fact.output_tokens,
            "gen_ai.usage.cache_read.input_tokens": fact.cached_tokens,
        }
        for name, count in told.items():
            if count is not None:
                self._used[name] = self._used.get(name, 0) + count

    def _model(self, model: str | None) -> None:
        if model is not None:
            self.span.attributes["gen_ai.response.model"] = model

    def traced(self, model: str | None) -> None:
        """Know which model has answered."""
        self._model(model)


def _message(role: str, text: str) -> str:
    """Return a message as the conventions have it where an attribute can hold no structure."""
    message: dict[str, object] = {"role": role, "parts": [{"type": "text", "content": text}]}
    if role == "assistant":
        message["finish_reason"] = "stop"
    return json.dumps([message], ensure_ascii=False)
