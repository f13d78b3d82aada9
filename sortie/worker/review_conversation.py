"""What is said with the agent that judges the work of a run."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from sortie.agents import Session
from sortie.facts import Fact, RunFact
from sortie.model import (
    ErrorKind,
    Finish,
    Finished,
    RunEnd,
    TurnOutcome,
)
from sortie.resources import shortage_behind
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker.activity import RunActivity
from sortie.worker.context import (
    Assignment,
    RunContext,
    RunReporter,
    RunScopes,
)
from sortie.worker.outcome import Abandoned, host_error_behind
from sortie.worker.review_answers import AnsweredVerdict, verdict_in
from sortie.worker.turn import take_turn
from sortie.worker.turn_events import TurnRequest
from sortie.worker.usage import RunUsage
from sortie.workflow.review_prompt import (
    form_again,
)

REVIEWER = "reviewer"
"""The role under which facts about the second session are told."""

TURNS = 2
"""Turns of a review: the second asks again for a verdict in its form."""

REVIEW_ANSWER_LIMIT = 256 * 1024
"""Characters of a reviewer's message that are read."""


class ReviewTools(Struct, frozen=True):
    """What a review needs of its run."""

    job: Assignment
    context: RunContext
    reporter: RunReporter
    scopes: RunScopes
    usage: RunUsage


class ReviewConversation:
    """What is said with a reviewer, turn by turn; ``told`` is what came of it."""

    def __init__(self, tools: ReviewTools, context: RunContext, path: str, prompt: str) -> None:
        self._tools = tools
        self._context = context
        self._path = path
        self._prompt = prompt
        self.reporter = reporter_of(tools.reporter)
        self.told: AnsweredVerdict | str = "it was not asked"

    async def held(self, session: Session) -> RunEnd:
        """Ask for a verdict, and once more where it is in no form that can be read."""
        prompt = self._prompt
        for number in range(1, TURNS + 1):
            activity = RunActivity(self._path, REVIEW_ANSWER_LIMIT)
            turn = TurnRequest(
                job=self._tools.job,
                number=number,
                prompt=prompt,
                context=self._context,
                reporter=self.reporter,
                usage=self._tools.usage,
                activity=activity,
            )
            end = await take_turn(turn, session)
            result = end.result
            if result.outcome is not TurnOutcome.COMPLETED:
                kind, message = result.error_kind or ErrorKind.TURN_FAILED, result.message or ""
                if end.error is not None and is_of_machine(end.error):
                    raise Abandoned(kind, message) from end.error
                self.told = f"its turn {result.outcome.value}: {kind.value}: {message}"
                break
            told = verdict_in(activity.answer or "", self._context.redact)
            if not isinstance(told, str):
                self.told = told
                break
            self.told, prompt = f"its answer is not in the form: {told}", form_again(told)
        return Finished(finish=Finish.DONE)


def reporter_of(reporter: RunReporter) -> RunReporter:
    """Return a reporter that marks facts as the reviewer's, and keeps back what would be taken for
    the run's own: the id of its session, and what its agent has done."""

    def publish(fact: Fact) -> None:
        if isinstance(fact, facts.AgentLaunched):
            fact = replace(fact, seconds_since_fetch=None)
        reporter.publish(replace(fact, role=REVIEWER) if isinstance(fact, RunFact) else fact)

    def tell(event: Event) -> None:
        if not isinstance(event, ev.AgentSessionKnown | ev.AgentActed):
            reporter.tell(event)

    return replace(reporter, publish=publish, tell=tell)


def is_of_machine(error: BaseException) -> bool:
    """Tell whether a host was lost, or the machine is short of something."""
    return host_error_behind(error) is not None or shortage_behind(error) is not None
