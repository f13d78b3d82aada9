"""What an agent tells during a turn, bounded and passed on: to the scheduler, and as facts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import trio
from msgspec import Struct

from sortie.model import Activity, ProcessIdentity
from sortie.model.texts import CONTROL, TEXT_LIMIT, cut, start_of
from sortie.model.turns import (
    NOTIFICATION_LIMIT,
    AgentEvent,
    AnswerGiven,
    ErrorsWritten,
    Launched,
    ModelAnswered,
    Notification,
    PermissionAsked,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnTraced,
    TurnUntraced,
    Usage,
)
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.activity import RunActivity
from sortie.worker.agent_values import AGENT_NAME_LIMIT, checked, checked_count, checked_session_id
from sortie.worker.context import Assignment, RunContext, RunReporter
from sortie.worker.turn_deadlines import turn_deadlines
from sortie.worker.usage import RunUsage

ABOUT_LIMIT = 500
"""Characters of what a tool was given."""

LOCATION_COUNT = 20
_TOOLS_AT_ONCE = 1000
_SHOWN_BESIDE_TEXTS = (ErrorsWritten, ToolStarted, ToolEnded, PermissionAsked)
"""Events before which a transcript has what the agent said before them, also where all came
together."""


class TurnRequest(Struct, frozen=True):
    """A prompt and where it stands in its run; ``usage`` and ``activity`` are the run's.

    ``taken_over`` is how many seconds ago another daemon has begun the turn, None for a new one.
    ``is_let_go`` tells whether the turn is left to another daemon.
    """

    job: Assignment
    number: int
    prompt: str
    context: RunContext
    reporter: RunReporter
    usage: RunUsage
    activity: RunActivity
    taken_over: float | None = None
    is_let_go: Callable[[], bool] = lambda: False


class TurnEvents:
    """Hears what the agent says; every sign of life pushes the stall deadline on.

    Rule: whatever text comes from an agent is freed of secrets and cut here, and what is no event
    is an error of its adapter. ``last_line`` is what the agent wrote last, to either stream,
    before it was ended.
    """

    def __init__(self, turn: TurnRequest) -> None:
        self._turn = turn
        self._agent = turn.context.settings.agent.kind
        self._redact = turn.context.redact
        self.deadlines = turn_deadlines(turn.context.settings.agent, turn.taken_over)
        self._launched_at: float | None = None
        self._tools: dict[str, tuple[float, ToolStarted]] = {}
        self.usage = turn.usage.begin_turn()
        self.last_line: str | None = None

    def take(self, batch: Sequence[AgentEvent]) -> None:
        """Take a batch of events; an empty one is a sign of life, and told as such."""
        now = trio.current_time()
        self.deadlines.output_came(now)
        lines, message, launched = 0, None, False
        texts: list[str] = []
        for event in batch:
            if isinstance(event, Notification):  # a thousand times as many as of all others
                lines, whole = lines + checked_count(event.lines), event.text
                message = self._text(event.message, NOTIFICATION_LIMIT)
                text = message if whole is None else checked(whole, str)
                if text:
                    texts.append(text)
            else:
                if texts and isinstance(event, _SHOWN_BESIDE_TEXTS):
                    self._spoke(lines, message, texts)
                    lines, message, texts = 0, None, []
                launched = launched or isinstance(event, Launched)
                self._pass_on(event)
        if (news := self._turn.activity.news(now)) is not None:
            self._tell_of(news)
        if launched:
            return
        if self._launched_at is not None:
            self._answered(self._launched_at)
        if batch and not lines:
            return  # what it is was told
        self._spoke(lines, message, texts)

    def _spoke(self, lines: int, message: str | None, texts: Sequence[str]) -> None:
        if message is not None:
            self._wrote(message)
        self._turn.reporter.publish(
            facts.AgentSpoke(
                run_id=self._turn.job.run_id,
                agent=self._agent,
                lines=lines,
                message=message,
                text="\n".join(texts) if texts else None,
            )
        )

    def _wrote(self, line: str) -> None:
        if self.deadlines.are_ahead(trio.current_time()):
            self.last_line = line

    def end(self) -> None:
        """Count the tools whose end was not told, and tell what was not told of the run yet."""
        for _, tool in self._tools.values():
            self._turn.activity.used(self._text(tool.name, AGENT_NAME_LIMIT))
        self._tools.clear()
        if (changed := self._turn.activity.unreported(trio.current_time())) is not None:
            self._tell_of(changed)

    def _tell_of(self, activity: Activity) -> None:
        self._turn.reporter.tell(ev.AgentActed(self._turn.job.run_id, activity))
        self._publish(facts.ActivityChanged, activity=activity)

    def _pass_on(self, event: AgentEvent) -> None:
        match event:
            case Launched(process=process, adopted=adopted):
                self._launched(checked(process, ProcessIdentity), adopted=adopted)
            case ErrorsWritten(text=text):
                known = checked(text, str)
                message = self._text(known.rpartition("\n")[2], NOTIFICATION_LIMIT)
                self._wrote(message)
                self._publish(facts.AgentWroteErrors, message=message, text=known)
            case ToolStarted():
                self._tool_started(event)
            case ToolEnded():
                self._tool_ended(event)
            case ModelAnswered():
                self._model_answered(event)
            case Usage():
                self._used(event)
            case SessionKnown(session_id=session_id):
                known = checked_session_id(session_id)
                run_id = self._turn.job.run_id
                self._turn.reporter.tell(ev.AgentSessionKnown(run_id, self._agent, known))
                self._publish(facts.SessionNamed, session_id=known)
            case AnswerGiven(text=text):
                self._turn.activity.answer = self._answer(text)
            case TurnTraced():
                self._traced(event)
            case TurnUntraced(reason=reason):
                self._publish(facts.ToolsUntraced, reason=self._text(reason, NOTIFICATION_LIMIT))
            case PermissionAsked(question=question, answer=answer):
                self._publish(
                    facts.PermissionAnswered,
                    question=self._text(question, NOTIFICATION_LIMIT),
                    answer=self._text(answer, AGENT_NAME_LIMIT),
                )
            case _:
                raise TypeError(f"an agent's event was expected, not {type(event).__name__}")

    def _publish(self, fact: type[facts.RunFact], /, **values: Any) -> None:
        self._turn.reporter.publish(fact(run_id=self._turn.job.run_id, **values))

    def _launched(self, process: ProcessIdentity, *, adopted: bool) -> None:
        now, turn = trio.current_time(), self._turn
        turn.reporter.tell(ev.ProcessLaunched(turn.job.run_id, process))
        if adopted:  # it was told when it was launched
            return
        self._launched_at = now
        since = now - turn.job.fetched_at if turn.number == 1 else None
        self._publish(
            facts.AgentLaunched, turn=turn.number, process=process, seconds_since_fetch=since
        )

    def _answered(self, launched_at: float) -> None:
        self._launched_at = None
        seconds = trio.current_time() - launched_at
        self._publish(facts.AgentAnswered, agent=self._agent, seconds=seconds)

    def _tool_started(self, event: ToolStarted) -> None:
        if len(self._tools) < _TOOLS_AT_ONCE:
            self._tools[self._text(event.id, AGENT_NAME_LIMIT)] = (trio.current_time(), event)
        self._publish(
            facts.ToolCallStarted,
            call=self._text(event.id, AGENT_NAME_LIMIT),
            **self._about(event),
            locations=self._places(event.locations),
        )

    def _tool_ended(self, event: ToolEnded) -> None:
        now, activity = trio.current_time(), self._turn.activity
        call = self._text(event.id, AGENT_NAME_LIMIT)
        began, tool = self._tools.pop(call, (now, ToolStarted(id=event.id, name="")))
        about = event.about or tool.about
        self._publish(
            facts.ToolCallEnded,
            call=call,
            **self._about(tool),
            locations=self._places((*tool.locations, *event.locations)),
            seconds=now - began if event.duration is None else float(event.duration),
            failed=bool(event.failed),
            error=None if event.error is None else self._text(event.error, TEXT_LIMIT),
            about=None if about is None else cut(self._text(about), ABOUT_LIMIT),
            output=None if event.output is None else cut(self._text(event.output), TEXT_LIMIT),
        )
        activity.used(self._text(tool.name, AGENT_NAME_LIMIT))
        if not event.failed:
            activity.modified(tool.kind, map(self._redact, (*tool.locations, *event.locations)))

    def _traced(self, event: TurnTraced) -> None:
        model = None if event.model is None else self._text(event.model, AGENT_NAME_LIMIT)
        answer = None if event.answer is None else self._answer(event.answer)
        self._turn.activity.traced(model)
        self._turn.activity.answer = answer or self._turn.activity.answer
        shown = None if answer is None else cut(answer)
        self._publish(facts.ToolsTraced, model=model, answer=shown)

    def _answer(self, text: object) -> str:
        plain = self._redact(checked(text, str)).replace("\r\n", "\n")
        return cut(CONTROL.sub("\ufffd", plain), self._turn.activity.answer_limit)

    def _model_answered(self, event: ModelAnswered) -> None:
        model = None if event.model is None else self._text(event.model, AGENT_NAME_LIMIT)
        seconds = float(event.seconds)
        if not (math.isfinite(seconds) and seconds >= 0):
            raise ValueError(
                f"{start_of(repr(event.seconds), 100)} is no time that an answer can take"
            )
        self._turn.activity.model_seen(model)
        self._publish(facts.ModelAnswerTimed, agent=self._agent, model=model, seconds=seconds)

    def _used(self, event: Usage) -> None:
        more = self._turn.usage.increments.of(event)
        self.usage.add(more)
        self._turn.activity.model_seen(more.model)
        run_id, spent = self._turn.job.run_id, self._turn.usage.spent
        self._turn.reporter.tell(ev.SpendingReported(run_id, spent))
        self._publish(
            facts.AgentUsed,
            input_tokens=more.input_tokens,
            output_tokens=more.output_tokens,
            cached_tokens=more.cached_tokens,
            credits=more.credits,
            cost=more.cost,
            currency=None if more.currency is None else self._text(more.currency, AGENT_NAME_LIMIT),
            model=None if more.model is None else self._text(more.model, AGENT_NAME_LIMIT),
            context_share=more.context_share,
            spent=spent,
        )

    def _text(self, value: object, limit: int | None = None) -> str:
        # Before it is cut: half a secret would not be found.
        return self._redact(checked(value, str))[:limit]

    def _about(self, tool: ToolStarted) -> dict[str, str | None]:
        kind = None if tool.kind is None else self._text(tool.kind, AGENT_NAME_LIMIT)
        return {"tool": self._text(tool.name, AGENT_NAME_LIMIT), "kind": kind}

    def _places(self, locations: Sequence[str]) -> tuple[str, ...]:
        distinct = dict.fromkeys(self._text(place, NOTIFICATION_LIMIT) for place in locations)
        return tuple(distinct)[:LOCATION_COUNT]
