"""The spans of one run: those that are under way, and how a fact changes them.

Rule 1: the root and the turns have the ids of ``sortie.model.traces``, as the worker does; all
others are counted.
Rule 2: whatever is under way when what contains it ends, ends with it, and is marked as unfinished.
Rule 3: what the agent is told and says is in a span only where ``content`` is set.
"""

from __future__ import annotations

from collections.abc import Mapping

from sortie.facts import Phase
from sortie.model import RunId, Stage, TurnOutcome
from sortie.model.traces import RUN, SESSION, hook_part, span_id_of, trace_id_of, turn_part
from sortie.telemetry import facts
from sortie.telemetry.traces.spans import AddSpan, OpenSpan, Value
from sortie.telemetry.traces.turn_spans import TurnSpans

_PHASES: Mapping[Phase, str] = {
    Phase.STARTING: "start",
    Phase.WORKSPACE: "workspace",
    Phase.SESSION: "session",
    Phase.REREAD: "reread",
    Phase.DELIVERY: "delivery",
    Phase.REVIEW: "review",
    Phase.ENDING: "end",
}
"""The names of the spans of phases; turns and hooks have spans of their own."""

_STEPS: Mapping[Stage, str] = {
    Stage.PROVEN: "prove",
    Stage.PUSHED: "push",
    Stage.DELIVERED: "pull request",
}
"""The names of the steps of a delivery, by the stage that each leads to."""


class RunSpans:
    """The spans of a run from its start to its end."""

    def __init__(self, run_id: RunId, root: OpenSpan, add: AddSpan, *, content: bool) -> None:
        self.root = root
        self.turn: TurnSpans | None = None
        self._run_id = run_id
        self._trace_id = trace_id_of(run_id)
        self._add = add
        self._content = content
        self._phase: OpenSpan | None = None
        self._review: OpenSpan | None = None
        self._counted = 0
        self._turns = 0
        self._step_began = root.start
        self._sessions: dict[str | None, str] = {}

    def end(self, now: int) -> None:
        """End all that is under way, the run last."""
        self._end_parts(now)
        self._over(self.root, now)

    def abandon(self, now: int) -> None:
        """End what is under way but for the run itself, which the next daemon ends."""
        self._end_parts(now)

    def _end_parts(self, now: int) -> None:
        self._end_turn(now)
        self._end_phase(now)
        self._end_review(now)

    def _over(self, span: OpenSpan, now: int) -> None:
        self._add(span.over(self._trace_id, now))

    def _id(self, part: str = "") -> int:
        """Return the id of a part, or of one more that nothing else needs to know."""
        if not part:
            self._counted += 1
            part = f"part/{self._counted}"
        return span_id_of(self._run_id, part)

    def _parent(self) -> int:
        inner = self._phase or self._review or self.root
        return inner.span_id

    def _past(
        self, name: str, seconds: float, now: int, error: str | None = None, **attributes: Value
    ) -> None:
        """Add a span that took so long until now."""
        self._over(
            OpenSpan(
                name=name,
                span_id=self._id(),
                parent_id=self._parent(),
                start=max(self.root.start, now - round(seconds * 1e9)),
                attributes={f"sortie.{key}": value for key, value in attributes.items()},
                error=error,
            ),
            now,
        )

    def enter(self, phase: Phase, now: int) -> None:
        """Begin the span of a phase, and end that of the one before."""
        self._end_phase(now)
        if phase is Phase.REVIEW:
            self._end_review(now)
        self._step_began = now
        name = _PHASES.get(phase)
        if name is None:
            return
        part = SESSION if phase is Phase.SESSION else ""
        span = OpenSpan(name=name, span_id=self._id(part), parent_id=self.root.span_id, start=now)
        if phase is Phase.REVIEW:
            self._review = span
        else:
            self._phase = span

    def _end_phase(self, now: int) -> None:
        if self._phase is not None:
            self._over(self._phase, now)
            self._phase = None

    def _end_review(self, now: int) -> None:
        if self._review is not None:
            self._over(self._review, now)
            self._review = None

    def reviewed(self, fact: facts.ReviewFinished, now: int) -> None:
        """End the span of a review with its verdict."""
        if self._review is None:
            return
        self._review.attributes |= {
            "sortie.review.verdict": fact.verdict.value,
            "sortie.review.round": fact.round,
            "sortie.review.findings": fact.findings,
            "sortie.commit": fact.commit,
            "gen_ai.agent.name": fact.agent,
        }
        self._end_review(now)

    def session(self, role: str | None, session_id: str | None) -> None:
        """Know the id of an agent's session."""
        if session_id:
            self._sessions[role] = session_id
            if self.turn is not None:
                self.turn.span.attributes["gen_ai.conversation.id"] = session_id

    def refused(self, fact: facts.SessionRefused, now: int) -> None:
        """Tell that there is no session."""
        span = self._phase or self._review or self.root
        span.error = fact.error_kind.value
        span.tell("session.refused", now, timed_out=fact.timed_out)

    def began_turn(self, fact: facts.TurnBegan, provider: str, now: int) -> None:
        """Begin a turn; ``provider`` is whose models its agent asks."""
        self._end_turn(now)
        self._end_phase(now)
        self._turns += 1
        span = OpenSpan(
            name=f"invoke_agent {fact.agent}",
            span_id=self._id(turn_part(self._turns)),
            parent_id=(self._review or self.root).span_id,
            start=now,
            kind="client",
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.provider.name": provider,
                "gen_ai.agent.name": fact.agent,
                "gen_ai.conversation.id": self._sessions.get(fact.role),
                "sortie.turn": fact.turn,
                "sortie.role": fact.role,
            },
        )
        self.turn = TurnSpans(span, self._trace_id, self._id, self._add, content=self._content)
        self.turn.told(fact.prompt)

    def taken_over(self, fact: facts.RunTakenOver, now: int) -> None:
        """Go on where another daemon has begun the run, and a turn."""
        self._turns = fact.turn
        self.root.start = now - round(fact.seconds * 1e9)
        self.root.tell("run.taken_over", now, daemon=fact.daemon, turn=fact.turn)

    def ended_turn(self, fact: facts.TurnCompleted, now: int) -> None:
        """End a turn."""
        if self.turn is None:
            return
        span = self.turn.span
        span.attributes |= {
            "sortie.turn.outcome": fact.outcome.value,
            "sortie.credits": fact.spent.credits,
            "sortie.cost_usd": fact.spent.cost_usd,
        }
        if fact.outcome is not TurnOutcome.COMPLETED:
            kind = fact.outcome if fact.error_kind is None else fact.error_kind
            if fact.outcome is not TurnOutcome.CANCELLED:
                span.error = kind.value
            span.tell(
                "turn.failed",
                now,
                kind=kind.value,
                timeout=fact.timeout,
                message=fact.error if self._content else None,
            )
        self.turn.answered(fact.answer)
        self._end_turn(now)

    def _end_turn(self, now: int) -> None:
        if self.turn is not None:
            self.turn.end(now)
            self.turn = None

    def advanced(self, fact: facts.DeliveryAdvanced, now: int) -> None:
        """Add the step of a delivery that has led to its stage."""
        if (name := _STEPS.get(fact.stage)) is not None:
            seconds = (now - self._step_began) / 1e9
            self._past(
                name,
                seconds,
                now,
                branch=fact.branch,
                commit=fact.head,
                files_changed=fact.files_changed,
                pull_request=fact.pull_request,
            )
        self._step_began = now

    def verified(self, fact: facts.CommandVerified, now: int) -> None:
        """Add a command of ``verify``."""
        error = None if fact.ok else "verification_failed"
        self._past("verify", fact.seconds, now, error, command=fact.command, status=fact.status)

    def hook(self, fact: facts.HookCompleted, now: int) -> None:
        """Add a hook, which has run."""
        error = None if fact.result == "ok" else f"hook_{fact.result}"
        span = OpenSpan(
            name=f"hook {fact.hook}",
            span_id=self._id(hook_part(fact.hook)),
            parent_id=self._parent(),
            start=max(self.root.start, now - round(fact.seconds * 1e9)),
            attributes={"sortie.hook": fact.hook, "sortie.status": fact.status},
            error=error,
        )
        self._over(span, now)


def root_span(run_id: RunId, start: int, attributes: dict[str, Value]) -> OpenSpan:
    """Return the span of a run as a whole."""
    return OpenSpan(
        name=RUN,
        span_id=span_id_of(run_id, RUN),
        parent_id=None,
        start=start,
        attributes={"sortie.run.id": run_id, **attributes},
    )
