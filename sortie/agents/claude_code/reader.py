"""What one turn of Claude Code says: its lines as events, and its outcome.

Rule: no line, whatever is in it, raises; one that cannot be understood is told as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sortie.agents.claude_code.messages import summary, system_text, text_of, whole
from sortie.agents.claude_code.outcome import Outcome
from sortie.agents.claude_code.tokens import TokenCounts, TokenLedger
from sortie.agents.claude_code.tools import ClaudeToolCalls
from sortie.agents.exits import Failure
from sortie.agents.output import LastAnswer
from sortie.json_rpc.values import items, mapping
from sortie.lines import strip_escapes
from sortie.model.texts import start_of
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    AnswerGiven,
    ModelAnswered,
    Notification,
    PermissionAsked,
    SessionKnown,
    TurnTraced,
    Usage,
)

_SYNTHETIC = "<synthetic>"
_MODEL_LIMIT = 200
_LIFE = frozenset({"tool_progress", "keep_alive"})
_SYSTEM_LIFE = frozenset({"status", "thinking_tokens", "background_tasks_changed"})
_REFUSED = "refused: nobody was there to allow it"
_CHUNKS = ('"message_start"', '"message_delta"')


class ClaudeReader:
    """Reads one turn; see TurnReader. The ledger is the session's."""

    def __init__(
        self, session_id: str, ledger: TokenLedger, clock: Callable[[], float], resume: bool
    ) -> None:
        self.session_id = session_id
        self._ledger = ledger
        self._clock = clock
        self.resume = resume
        self._outcome = Outcome()
        self._tools = ClaudeToolCalls(clock)
        self._request_began: float | None = None
        self._timed = False
        self._denied: set[str] = set()
        self._messages: dict[str, str] = {}
        self._context: tuple[str, int] | None = None
        self._old = False
        self._model: str | None = None
        self._answer = LastAnswer()

    @property
    def conversation_lost(self) -> bool:
        """Whether the conversation that was to go on does not exist."""
        return self.resume and self._outcome.conversation_missing

    @property
    def id_taken(self) -> bool:
        """Whether the conversation that was to begin exists already, somewhere else."""
        return not self.resume and self._outcome.id_taken

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        """Return the events of a line; an empty list is a sign of life."""
        if line.startswith('{"type":"stream_event"') and not any(it in line for it in _CHUNKS):
            return []  # the bulk of the output: each chunk of an answer
        if not line.strip():
            return []
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            return [_note(f"malformed: {line}")]
        return self._take(event["type"], event)

    def stderr(self, line: str) -> bool:
        """Show all of it."""
        self._outcome.stderr(line)
        return True

    def close(self, _stderr: str) -> Sequence[AgentEvent]:
        """Return the ends of the tools that end with the turn, and what was said last."""
        self._ledger.settle()
        said = self._answer.text
        answered = [AnswerGiven(text=said)] if said else []
        return [*self._tools.close(), *answered]

    def failure(self, status: int) -> Failure | None:
        """Return what the result and the exit status mean."""
        return self._outcome.failure(status)

    def _take(self, kind: str, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        match kind:
            case "system":
                return self._system(text_of(event.get("subtype")), event)
            case "assistant":
                return self._assistant(event)
            case "user":
                return self._user(event)
            case "result":
                return self._result(event)
            case "stream_event":
                return self._chunk(event)
            case "rate_limit_event":
                return self._rate_limit(mapping(event.get("rate_limit_info")))
            case _:
                return [] if kind in _LIFE else [_note(system_text(kind, event))]

    def _system(self, subtype: str, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        match subtype:
            case "init":
                return self._init(event)
            case "permission_denied":
                return self._permission_denied(event, text_of(event.get("message")))
            case _ if subtype in _SYSTEM_LIFE:
                return []
            case _:
                return [_note(system_text(subtype or "system", event))]

    def _init(self, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        self._request_began = self._clock()
        self._old = text_of(event.get("claude_code_version")).startswith(("0.", "1.", "2.0."))
        names = ("model", "permissionMode", "claude_code_version")
        told = (text_of(event.get(name)) for name in names)
        self._model = text_of(event.get("model"))[:_MODEL_LIMIT] or None
        events: list[AgentEvent] = [
            _note(f"session began: {', '.join(filter(None, told))}"),
            TurnTraced(model=self._model),
        ]
        known = text_of(event.get("session_id"))
        if known and known != self.session_id and known.isprintable() and len(known) <= 100:
            self.session_id = known
            events.append(SessionKnown(session_id=known))
        return events

    def _assistant(self, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        message = mapping(event.get("message"))
        blocks = items(message.get("content"))
        model, usage = text_of(message.get("model")), mapping(message.get("usage"))
        self._outcome.assistant(event, model == _SYNTHETIC)
        events: list[AgentEvent] = []
        if usage and model != _SYNTHETIC:
            events += self._answered(model)
            events += self._used(text_of(message.get("id")), model, usage)
            if event.get("parent_tool_use_id") is None:
                self._context = (model, TokenCounts.of_message(usage).context)
                events += self._answered_by(model)
        if event.get("parent_tool_use_id") is None and model != _SYNTHETIC:
            self._said(text_of(message.get("id")), blocks)
        if said := summary(blocks):
            events.append(_note(said, whole(blocks)))
        tools = (self._tools.started(block) for block in blocks if block.get("type") == "tool_use")
        return [*events, *(tool for tool in tools if tool is not None)]

    def _said(self, message_id: str, blocks: Sequence[Mapping[str, Any]]) -> None:
        """Take a part of a message of the conversation itself, not of a subagent's."""
        if not message_id:
            self._answer.close()
        for block in blocks:
            if block.get("type") == "text" and (said := text_of(block.get("text"))).strip():
                self._answer.add(said, message_id, joint="\n")

    def _answered_by(self, model: str) -> list[AgentEvent]:
        """Tell which model answers, where it is another than before: a fallback may have come."""
        name = model[:_MODEL_LIMIT]
        if not name or name == self._model:
            return []
        self._model = name
        return [TurnTraced(model=name)]

    def _answered(self, model: str) -> list[AgentEvent]:
        if self._request_began is None:
            return []
        seconds = max(0.0, self._clock() - self._request_began)
        self._request_began, self._timed = None, True
        return [ModelAnswered(seconds=seconds, model=model or None)]

    def _used(self, message_id: str, model: str, usage: Mapping[str, Any]) -> list[AgentEvent]:
        told = self._ledger.message(message_id, model, usage)
        return [] if told is None else [told]

    def _user(self, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        self._request_began = self._clock()
        blocks = items(mapping(event.get("message")).get("content"))
        results = (block for block in blocks if block.get("type") == "tool_result")
        ended = (self._tools.ended(block) for block in results)
        return [tool for tool in ended if tool is not None]

    def _chunk(self, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        """Take a piece of an answer: only its first and last say what it has used."""
        inner, parent = mapping(event.get("event")), text_of(event.get("parent_tool_use_id"))
        match inner.get("type"):
            case "message_start":
                message = mapping(inner.get("message"))
                self._messages[parent] = text_of(message.get("id"))
                if len(self._messages) > 1000:
                    del self._messages[next(iter(self._messages))]
            case "message_delta":
                name = text_of(event.get("api_message_id")) or self._messages.get(parent, "")
                told = self._ledger.more(name, mapping(inner.get("usage")))
                return [] if told is None else [told]
        return []

    def _rate_limit(self, info: Mapping[str, Any]) -> Sequence[AgentEvent]:
        status = text_of(info.get("status"))
        self._outcome.rate_limit(info)
        if status in ("allowed", ""):
            return []
        return [_note(f"usage limit {text_of(info.get('rateLimitType'))}: {status}")]

    def _permission_denied(self, event: Mapping[str, Any], why: str) -> list[AgentEvent]:
        call, tool = text_of(event.get("tool_use_id")), text_of(event.get("tool_name"))
        if call in self._denied or len(self._denied) >= 1000:
            return []
        self._denied.add(call)
        question = start_of(strip_escapes(f"{tool}: {why}" if why else tool), NOTIFICATION_LIMIT)
        return [PermissionAsked(question=question, answer=_REFUSED)]

    def _result(self, event: Mapping[str, Any]) -> Sequence[AgentEvent]:
        self._outcome.result(event)
        said = text_of(event.get("result"))
        if said.strip() and event.get("is_error") is False:  # the whole of the last message
            self._answer.close()
            self._answer.add(said)
        events: list[AgentEvent] = []
        for denial in items(event.get("permission_denials")):
            events += self._permission_denied(denial, summary([_as_tool_use(denial)]))
        models = event.get("model_usage_since_last_result")
        if models is None and self._old:  # where a process counts for itself alone
            models = event.get("modelUsage")
        told = models if isinstance(models, Mapping) else None
        events += self._ledger.result(told, mapping(event.get("usage")))
        events += self._context_share(mapping(event.get("modelUsage")))
        taken = event.get("duration_api_ms")
        if not self._timed and isinstance(taken, int | float) and 0 < taken < 1e12:
            events.append(ModelAnswered(seconds=taken / 1000))
        return events

    def _context_share(self, models: Mapping[str, Any]) -> list[AgentEvent]:
        """Return how full the context is, where the result has its size."""
        if self._context is None:
            return []
        model, tokens = self._context
        size = mapping(models.get(model)).get("contextWindow")
        if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
            return []
        return [Usage(context_share=min(1.0, tokens / size), cumulative=True)]


def _as_tool_use(denial: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "name": "", "input": denial.get("tool_input")}


def _note(text: str, lines: str | None = None) -> Notification:
    """Return what stands for a text; ``lines`` are what it says in short, where they differ: ""
    for what the events of tools tell."""
    shown = strip_escapes(text).strip()
    message = start_of(shown, NOTIFICATION_LIMIT)
    more = shown if lines is None else lines
    return Notification(
        message=message or "an event without a name", text=None if more == message else more
    )
