"""The sink that makes spans of facts.

Rule 1: a run has spans from RunStarted to RunFinished, and one of an earlier daemon has its root
from RunRecovered. Facts about any other run are ignored, as are runs that are not sampled.
Rule 2: no text leaves here with a secret in it, longer than its limit, or in no UTF-8.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sortie.facts import Fact
from sortie.model import Issue, IssueId, RunId, RunStatus, cut
from sortie.model.secrets import redactor
from sortie.model.texts import UNUSABLE
from sortie.model.traces import RUN, is_sampled, span_id_of, trace_id_of
from sortie.telemetry import facts
from sortie.telemetry.traces.run_facts import tell
from sortie.telemetry.traces.run_spans import RunSpans, root_span
from sortie.telemetry.traces.spans import AddSpan, OpenSpan, Value

TEXT_LENGTH, CONTENT_LENGTH = 1000, 64 * 1024
"""Characters of an attribute: of any, and of one with what an agent was told or has said."""

ISSUES_REMEMBERED = 10_000
"""Issues whose last run is remembered, so that a later span can be linked to it."""

_CONTENT = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    }
)
_BAD = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED, RunStatus.INTERRUPTED})


class TracedWorkflow(Struct, frozen=True, kw_only=True):
    """What spans tell of their workflow, and which are made. ``provider_of`` returns whose models
    an agent of some kind asks, ``wall`` gives Unix nanoseconds."""

    name: str
    sample: float
    content: bool
    provider_of: Callable[[str], str]
    wall: Callable[[], int]


class TraceSink:
    """Makes spans; each goes to ``add`` once it is over."""

    def __init__(self, workflow: TracedWorkflow, add: AddSpan) -> None:
        self._workflow = workflow
        self._add_span = add
        self._redact = redactor(())
        self._runs: dict[RunId, RunSpans] = {}
        self._last: OrderedDict[IssueId, RunId] = OrderedDict()
        self._triggers: dict[IssueId, str] = {}
        self._merges = 0

    def hide(self, secrets: Collection[str]) -> None:
        """Hide these secrets, and no others, in spans from now on."""
        self._redact = redactor(secrets)

    def close(self) -> None:
        """End what is under way of each run, which itself the next daemon ends."""
        now = self._workflow.wall()
        for run in self._runs.values():
            run.abandon(now)
        self._runs.clear()

    def __call__(self, fact: Fact) -> None:
        """Make of a fact what spans tell of it."""
        if (handle := _HANDLERS.get(type(fact))) is not None:
            handle(self, fact)

    def _started(self, fact: facts.RunStarted) -> None:
        now, issue = self._workflow.wall(), fact.issue
        trigger = self._triggers.pop(issue.id, "reaction" if fact.reaction else "poll")
        former = self._link_to_last(issue.id)
        self._remember(issue.id, fact.run_id)
        if not self._is_sampled(trace_id_of(fact.run_id)):
            return
        told: dict[str, Value] = {
            "sortie.host": fact.host,
            "sortie.attempt": fact.attempt,
            "sortie.trigger": trigger,
            "sortie.reaction": fact.reaction or None,
            "gen_ai.agent.name": fact.agent,
        }
        root = root_span(fact.run_id, now, self._about(issue, fact.rule) | told)
        root.links = former
        spans = RunSpans(fact.run_id, root, self._add, content=self._workflow.content)
        self._runs[fact.run_id] = spans

    def _taken_over(self, fact: facts.RunTakenOver) -> None:
        """Begin the spans of a run in mid-turn; the span of that turn is not told here."""
        self._started(fact)
        known = self._runs.get(fact.run_id)
        if known is not None:
            known.taken_over(fact, self._workflow.wall())

    def _recovered(self, fact: facts.RunRecovered) -> None:
        self._remember(fact.issue.id, fact.run_id)
        if not self._is_sampled(trace_id_of(fact.run_id)) or not fact.began:
            return
        told: dict[str, Value] = {
            "sortie.host": fact.host,
            "sortie.attempt": fact.attempt,
            "sortie.run.status": RunStatus.INTERRUPTED.value,
            "sortie.run.turns": fact.turns,
        }
        attributes = self._about(fact.issue, fact.rule) | told
        root = root_span(fact.run_id, round(fact.began * 1e9), attributes)
        root.error = RunStatus.INTERRUPTED.value
        root.tell("run.recovered", self._workflow.wall())
        self._add(root.over(trace_id_of(fact.run_id), round(fact.heard_of * 1e9)))

    def _finished(self, fact: facts.RunFinished) -> None:
        run = self._runs.pop(fact.run_id, None)
        if run is None:
            return
        kind, content = fact.error_kind, self._workflow.content
        run.root.attributes |= {
            "sortie.run.status": fact.status.value,
            "sortie.run.turns": fact.turns,
            "sortie.run.stopped_for": fact.stopped_for and fact.stopped_for.value,
            "sortie.run.error": fact.error if content else None,
            "sortie.issue.state": fact.issue.state,
            "sortie.credits": fact.spent.credits,
            "sortie.tokens": fact.spent.tokens,
            "sortie.cost_usd": fact.spent.cost_usd,
            "sortie.pull_request.url": fact.summary.pull_request,
        }
        if fact.status in _BAD:
            run.root.error = (kind or fact.status).value
        elif kind is not None:
            run.root.attributes["error.type"] = kind.value
        run.end(self._workflow.wall())

    def _of_run(self, fact: facts.RunFact | facts.HookCompleted) -> None:
        run = None if fact.run_id is None else self._runs.get(fact.run_id)
        if run is not None:
            tell(run, fact, self._workflow.wall(), self._workflow.provider_of)

    def _waits(self, fact: facts.RetryScheduled) -> None:
        self._triggers[fact.issue.id] = fact.trigger.value

    def _waits_no_more(self, fact: facts.WaitEnded | facts.IssueHeld) -> None:
        self._triggers.pop(fact.issue.id, None)

    def _merge(self, fact: facts.MergeAttempted) -> None:
        """Add a trace of a merge, or of a try, linked to the run whose work it is."""
        now = self._workflow.wall()
        self._merges += 1
        ids = RunId(f"merge/{fact.pull_request}/{now}/{self._merges}")
        if not self._is_sampled(trace_id_of(ids)):
            return
        span = OpenSpan(
            name="merge",
            span_id=span_id_of(ids, RUN),
            parent_id=None,
            start=now,
            kind="client",
            attributes={
                **self._about(fact.issue, ""),
                "sortie.pull_request.url": fact.pull_request,
                "sortie.merge.result": fact.result,
            },
            links=self._link_to_last(fact.issue.id),
            error=fact.result if fact.result in ("refused", "failed") else None,
        )
        self._add(span.over(trace_id_of(ids), now))

    def _is_sampled(self, trace_id: int) -> bool:
        return is_sampled(trace_id, self._workflow.sample)

    def _about(self, issue: Issue, rule: str) -> dict[str, Value]:
        return {
            "sortie.workflow": self._workflow.name,
            "sortie.issue.id": issue.id,
            "sortie.issue.identifier": issue.identifier,
            "sortie.rule": rule or None,
        }

    def _remember(self, issue_id: IssueId, run_id: RunId) -> None:
        self._last[issue_id] = run_id
        self._last.move_to_end(issue_id)
        if len(self._last) > ISSUES_REMEMBERED:
            self._last.popitem(last=False)

    def _link_to_last(self, issue_id: IssueId) -> Sequence[tuple[int, int]]:
        last = self._last.get(issue_id)
        return () if last is None else ((trace_id_of(last), span_id_of(last, RUN)),)

    def _add(self, span: Any) -> None:
        events = [replace(one, attributes=self._clean(one.attributes)) for one in span.events]
        self._add_span(
            replace(
                span,
                name=self._text(span.name, TEXT_LENGTH),
                attributes=self._clean(span.attributes),
                events=events,
            )
        )

    def _clean(self, attributes: Mapping[str, Value]) -> dict[str, Value]:
        return {
            key: self._value(value, CONTENT_LENGTH if key in _CONTENT else TEXT_LENGTH)
            for key, value in attributes.items()
            if value is not None
        }

    def _value(self, value: Value, limit: int) -> Value:
        if isinstance(value, str):
            return self._text(value, limit)
        if isinstance(value, Sequence):
            return [self._text(item, limit) for item in value]
        return value

    def _text(self, text: str, limit: int) -> str:
        return cut(UNUSABLE.sub("\ufffd", self._redact(text)), limit)


_HANDLERS: Mapping[type[Fact], Callable[[TraceSink, Any], None]] = {
    facts.RunStarted: TraceSink._started,
    facts.RunTakenOver: TraceSink._taken_over,
    facts.RunRecovered: TraceSink._recovered,
    facts.RunFinished: TraceSink._finished,
    facts.RetryScheduled: TraceSink._waits,
    facts.WaitEnded: TraceSink._waits_no_more,
    facts.IssueHeld: TraceSink._waits_no_more,
    facts.MergeAttempted: TraceSink._merge,
    **dict.fromkeys(
        (
            facts.AgentAnswered,
            facts.AgentUsed,
            facts.CommandVerified,
            facts.ContainerStarted,
            facts.DeliveryAdvanced,
            facts.HookCompleted,
            facts.ModelAnswerTimed,
            facts.PermissionAnswered,
            facts.ReviewFinished,
            facts.RunPhaseChanged,
            facts.RunStopping,
            facts.SessionNamed,
            facts.SessionRefused,
            facts.SessionStarted,
            facts.SessionWaiting,
            facts.ToolCallEnded,
            facts.ToolCallStarted,
            facts.ToolsTraced,
            facts.TurnBegan,
            facts.TurnCompleted,
            facts.WorkspaceReady,
        ),
        TraceSink._of_run,
    ),
}
"""What is done with each kind of fact; of all others, such as output, nothing is looked at."""
