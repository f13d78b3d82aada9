"""The calls of one run: checked, counted, answered within a time, and told of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import trio
from msgspec import Struct

from sortie.model import RunId, SortieError, cut
from sortie.model.outside import on_one_line
from sortie.model.tools import CALLS_LIMIT, ToolName
from sortie.telemetry import Publish, facts
from sortie.tools import Answer, RunTools, ToolRefused
from sortie.tools.arguments import DESCRIBED, Ask, CommentText, NoteText, SetStatus

CALL_TIMEOUT = 60.0
"""Seconds after which a call is answered with an error; what it has begun may still be done."""

ANSWER_LIMIT = 200_000
"""Characters of an answer."""

ERROR_LIMIT = 1000
"""Characters of what an agent is told where a call fails."""


class ToolAnswer(Struct, frozen=True):
    """What the agent is told; ``is_error``: the call was not answered."""

    text: str
    is_error: bool = False


class ToolCalls:
    """Answers the calls of all clients of a run. ``names`` are the tools that it has."""

    def __init__(
        self,
        run_id: RunId,
        names: Sequence[ToolName],
        tools: RunTools,
        publish: Publish,
        redact: Callable[[str], str],
    ) -> None:
        self.names = tuple(names)
        self._run_id = run_id
        self._tools = tools
        self._publish = publish
        self._redact = redact
        self._count = 0

    async def call(self, name: str, arguments: Mapping[str, Any] | bytes) -> ToolAnswer:
        """Answer a call; every failure is an answer, too. Arguments in bytes are JSON, or none."""
        began, self._count = trio.current_time(), self._count + 1
        result: facts.ToolResult = "ok"
        try:
            if self._count > CALLS_LIMIT:
                raise ToolRefused(f"Sortie answers at most {CALLS_LIMIT} calls in a run.")
            text = self._text(await self._answer(name, arguments))
        except ToolRefused as exc:
            result, text = "refused", str(exc)
        except SortieError as exc:
            result, text = "failed", f"That did not work: {exc}"
        if result != "ok":
            text = cut(self._redact(text), ERROR_LIMIT)
        if self._count <= CALLS_LIMIT + 1:
            self._publish(
                facts.ToolCalled(
                    run_id=self._run_id,
                    tool=name if name in self.names else "unknown",
                    result=result,
                    seconds=trio.current_time() - began,
                    error=None if result == "ok" else on_one_line(text),
                )
            )
        return ToolAnswer(text, is_error=result != "ok")

    async def _answer(self, name: str, arguments: Mapping[str, Any] | bytes) -> Answer:
        if name not in self.names:
            raise ToolRefused(f"There is no such tool here; there are: {', '.join(self.names)}.")
        described = DESCRIBED[ToolName(name)]
        try:
            if isinstance(arguments, bytes):
                given = msgspec.json.decode(arguments.strip() or b"{}", type=described.arguments)
            else:
                given = msgspec.convert(arguments, described.arguments)
        except msgspec.DecodeError as exc:  # of which what does not fit the tool is a kind
            raise ToolRefused(f"The arguments cannot be used: {exc}") from None
        with trio.move_on_after(CALL_TIMEOUT):
            return await self._made(ToolName(name), given)
        raise ToolRefused(
            f"This took longer than {CALL_TIMEOUT:.0f} seconds; it may still be done. Go on"
            " without waiting for it."
        )

    async def _made(self, name: ToolName, given: Struct) -> Answer:
        match given:
            case CommentText(text=text):
                return await self._tools.comment(self._redact(text))
            case NoteText(text=text):
                return await self._tools.note(self._redact(text))
            case SetStatus():
                return await self._tools.set_status(given)
            case Ask():
                return await self._tools.ask(given)
        reading = {
            ToolName.ISSUE: self._tools.issue,
            ToolName.BUDGET: self._tools.budget,
            ToolName.HISTORY: self._tools.history,
            ToolName.PULL_REQUEST: self._tools.pull_request,
        }
        return await reading[name]()

    def _text(self, answer: Answer) -> str:
        text = json.dumps(_clean(answer, self._redact), ensure_ascii=False, indent=1)
        return cut(text, ANSWER_LIMIT)


def _clean(value: Any, redact: Callable[[str], str]) -> Any:
    """Return an answer without secrets, and without what is not known."""
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {key: _clean(item, redact) for key, item in value.items() if item is not None}
        case list() | tuple():
            return [_clean(item, redact) for item in value]
        case _:
            return value
