"""Turns Kiro's own record of a turn into events; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from sortie.acp import values
from sortie.kiro.conversations import ModelAnswer, Record, ToolResult, ToolUse, ToolUsesCancelled
from sortie.kiro.conversations.records import credits_of, final_answer
from sortie.kiro.conversations.turn import Addition
from sortie.model import TEXT_LIMIT, cut
from sortie.model.turns import (
    AgentEvent,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    TurnUntraced,
    Usage,
)

TOLD_TOOLS = 1000
"""Tool uses that are reported of one turn; each is two facts for the daemon's only loop."""

_PATH_COUNT = 20
_WORD_LIMIT = 200
_ERROR_LIMIT = 2000

# A tool that edits is told as such by the file that a use of it writes; else it has only looked.
_KINDS = {
    "fs_read": "read",
    "read": "read",
    "code": "read",
    "fs_write": "read",
    "fs_edit": "read",
    "write": "read",
    "execute_bash": "execute",
    "execute_cmd": "execute",
    "shell": "execute",
    "use_aws": "execute",
    "aws": "execute",
    "grep": "search",
    "glob": "search",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "thinking": "think",
}
_GIVEN = ("command", "pattern", "url", "query")
_UNDONE = "it was cancelled"
_UNENDED = "the turn ended before the tool did"


class _Outcome(Struct, frozen=True):
    failed: bool
    said: str = ""
    at: int | None = None


def events_of(
    addition: Addition, redacted: Callable[[str], str], *, with_credits: bool
) -> list[AgentEvent]:
    """Return what a turn has added as the worker hears it, in the order in which it happened.

    With ``with_credits`` also what it has cost: where Kiro's own last line has not told it.
    """
    uses = [record for record in addition.records if isinstance(record, ToolUse)]
    outcomes = dict(_outcomes(addition.records))
    events: list[AgentEvent] = []
    for use in uses[:TOLD_TOOLS]:
        events += _of_use(use, outcomes.get(use.id, _Outcome(True, _UNENDED)), redacted)
    if len(uses) > TOLD_TOOLS:
        events.append(TurnUntraced(reason=f"only {TOLD_TOOLS} of {len(uses)} tools are told"))
    events += _used(addition, with_credits=with_credits)
    model, answer = _model(addition), final_answer(addition.records)
    return [
        *events,
        TurnTraced(
            model=None if model is None else redacted(model)[:_WORD_LIMIT],
            answer=None if answer is None else cut(redacted(answer), TEXT_LIMIT),
        ),
    ]


def _outcomes(records: Sequence[Record]) -> Iterator[tuple[str, _Outcome]]:
    for record in records:
        match record:
            case ToolResult(tool_use_id=use, text=text, succeeded=succeeded, at=at):
                failed = succeeded is False
                yield use, _Outcome(failed, text, at)
            case ToolUsesCancelled(tool_use_ids=ids, at=at):
                yield from ((use, _Outcome(True, _UNDONE, at)) for use in ids)
            case _:
                pass


def _of_use(
    use: ToolUse, outcome: _Outcome, redacted: Callable[[str], str]
) -> Iterator[AgentEvent]:
    places = tuple(redacted(path) for path in _paths(use))
    kind = "edit" if use.modified_file is not None else _KINDS.get(use.name)
    name = redacted(use.name)[:_WORD_LIMIT]
    told = (values.text(use.input, key) for key in _GIVEN if kind not in ("read", "edit"))
    given = next(filter(None, told), None)
    yield ToolStarted(
        id=use.id[:_WORD_LIMIT],
        name=name,
        kind=kind,
        locations=places,
        about=None if given is None else cut(redacted(given), _ERROR_LIMIT),
    )
    both = use.at is not None and outcome.at is not None
    took = max(0, (outcome.at or 0) - (use.at or 0)) / 1000 if both else 0.0
    yield ToolEnded(
        id=use.id[:_WORD_LIMIT],
        failed=outcome.failed,
        duration=took,
        error=redacted(outcome.said)[:_ERROR_LIMIT] if outcome.failed else None,
        output=None if outcome.failed else cut(redacted(outcome.said), TEXT_LIMIT) or None,
    )


def _paths(use: ToolUse) -> list[str]:
    """Return the files that a use names; reads may name several."""
    given: list[Mapping[str, object]] = [use.input, *values.items(use.input, "operations")]
    named = (values.text(each, key) for each in given for key in ("path", "file_path"))
    return [path for path in dict.fromkeys(named) if path][:_PATH_COUNT]


def _used(addition: Addition, *, with_credits: bool) -> Iterator[Usage]:
    spent = credits_of(addition.usages) if with_credits else None
    shares = [r.context_share for r in addition.records if isinstance(r, ModelAnswer)]
    told = [share for share in shares if share is not None and 0 <= share <= 100]
    share = told[-1] / 100 if told else None
    if spent is not None or share is not None:
        yield Usage(credits=spent, context_share=share)


def _model(addition: Addition) -> str | None:
    answered = [r.model for r in addition.records if isinstance(r, ModelAnswer) and r.model]
    used = [usage.model for usage in addition.usages if usage.model]
    return next(iter([*reversed(answered), *reversed(used)]), None)
