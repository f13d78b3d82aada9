"""What the tools of a run's agent do: read, comment, note, and say how the work stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio
from msgspec import Struct

from sortie.model import Issue, PullRequest, Spending, cut
from sortie.model.outside import on_one_line
from sortie.model.questions import Question
from sortie.model.tools import COMMENTS_LIMIT, NOTES_LIMIT
from sortie.scheduler import events as ev
from sortie.store import HistoryRow
from sortie.telemetry import facts
from sortie.tools import Answer, ToolRefused
from sortie.tools.arguments import Ask, SetStatus, WorkStatus
from sortie.worker.agent_word import AgentWord, WordRefused
from sortie.worker.context import Assignment, RunContext, RunReporter
from sortie.worker.outcome import AgentStatus, StatusWord
from sortie.worker.shown_pull_request import shown_pull_request
from sortie.workflow.fences import Fence

DESCRIPTION_SHOWN = 40_000
COMMENTS_SHOWN = 30
COMMENT_SHOWN = 3000
RUNS_SHOWN = 10
ANSWER_SHOWN = 2000

_WORDS = {
    WorkStatus.DONE: StatusWord.DONE,
    WorkStatus.BLOCKED: StatusWord.BLOCKED,
    WorkStatus.NEEDS_REVIEW: StatusWord.NEEDS_HUMAN_REVIEW,
    WorkStatus.NO_CHANGE_NEEDED: StatusWord.DONE,
}


class RunProgress(Struct, frozen=True, kw_only=True):
    """How far a run is: its turn, when that ends at the latest, in trio's time, what it has used,
    its branch and its pull request, each None where there is none."""

    turn: int
    turn_ends_at: float
    spent: Spending
    branch: str | None = None
    pull_request: PullRequest | None = None


class _Quotes:
    """How one answer quotes strangers: in a fence, where the settings want one."""

    def __init__(self, fence: Fence | None) -> None:
        self._fence = fence

    def quote(self, text: str, what: str) -> str:
        """Return a text as it stands in the answer."""
        return text if self._fence is None or not text.strip() else self._fence.around(text, what)

    def explained(self, answer: Mapping[str, Any]) -> Answer:
        """Return an answer that says first what its fences mean, if there are any in it."""
        head = "" if self._fence is None else self._fence.with_head("").strip()
        return {"about_quotes": head, **answer} if head else answer


class AgentTools:
    """The tools of one run; see RunTools. ``progress`` tells how far it is."""

    def __init__(
        self,
        job: Assignment,
        context: RunContext,
        reporter: RunReporter,
        word: AgentWord,
        progress: Callable[[], RunProgress],
    ) -> None:
        self._job = job
        self._context = context
        self._reporter = reporter
        self._word = word
        self._progress = progress
        self._comments = 0
        self._notes = 0

    async def issue(self) -> Answer:
        """Read the issue again."""
        issue_id = self._job.issue.id
        read = await self._context.tracker.fetch_by_ids([issue_id])
        if (error := read.failed.get(issue_id)) is not None:
            raise error
        issue = next((one for one in read.issues if one.id == issue_id), None)
        if issue is None:
            raise ToolRefused("The tracker does not know the issue any more.")
        comments, quotes = issue.comments[-COMMENTS_SHOWN:], self._quotes()
        description = cut(issue.description, DESCRIPTION_SHOWN)
        return quotes.explained(
            {
                **_named(issue),
                "description": quotes.quote(description, "the issue's description"),
                "comments_left_out": len(issue.comments) - len(comments) or None,
                "comments": [
                    {
                        "author": on_one_line(one.author),
                        "at": None if one.created_at is None else one.created_at.isoformat(),
                        "body": quotes.quote(cut(one.body, COMMENT_SHOWN), "a comment"),
                    }
                    for one in comments
                ],
            }
        )

    async def comment(self, text: str) -> Answer:
        """Have a comment on record, from where it is made once."""
        if not text.strip():
            raise ToolRefused("A comment needs a text.")
        if self._comments >= COMMENTS_LIMIT:
            raise ToolRefused(
                f"You have made {COMMENTS_LIMIT} comments in this run, and there are no more; put"
                " what is left to say into your last answer."
            )
        self._comments += 1
        number = self._comments
        await self._reporter.commit(ev.AgentCommented(self._job.run_id, number, text))
        return {
            "recorded": "The comment is on record, and is made as soon as the tracker takes it.",
            "comments_left": COMMENTS_LIMIT - number,
        }

    async def set_status(self, status: SetStatus) -> Answer:
        """Take the agent's word, as if it stood in the status file."""
        reason = self._context.redact(status.reason.strip())
        if status.status is WorkStatus.BLOCKED and not reason:
            raise ToolRefused("Say in `reason` what keeps you from going on.")
        if status.status is WorkStatus.NO_CHANGE_NEEDED:
            reason = f"no change is needed{f': {reason}' if reason else ''}"
        word = _WORDS[status.status]
        self._say(lambda: self._word.status(AgentStatus(word, on_one_line(reason))))
        return {"status": status.status.value, "next": "It takes effect when you end your turn."}

    async def ask(self, question: Ask) -> Answer:
        """Take a question; it is asked when the turn is over."""
        redact = self._context.redact
        try:
            asked = Question(
                text=redact(question.question),
                options=tuple(map(redact, question.options)),
                default=redact(question.default) or None,
                timeout=60.0 * question.minutes or None,
            )
        except ValueError as exc:
            raise ToolRefused(f"The question cannot be asked: {exc}.") from None
        self._say(lambda: self._word.ask(asked))
        return {
            "next": (
                "The question is asked when you end your turn: end it now. The answer is the next"
                " thing you are told in this conversation."
            )
        }

    async def note(self, text: str) -> Answer:
        """Publish a note."""
        line = on_one_line(text).strip()
        if not line:
            raise ToolRefused("A note needs a text.")
        if self._notes >= NOTES_LIMIT:
            raise ToolRefused(f"You have left {NOTES_LIMIT} notes in this run; there are no more.")
        self._notes += 1
        self._reporter.publish(facts.AgentNoted(run_id=self._job.run_id, text=line))
        return {"shown": line}

    async def budget(self) -> Answer:
        """Tell what is used and left."""
        progress, settings = self._progress(), self._context.settings.agent
        left = progress.turn_ends_at - trio.current_time()
        answer: dict[str, Any] = {
            "turn": progress.turn,
            "turns_left": max(0, settings.max_turns - progress.turn),
            "seconds_left_in_turn": round(left) if 0 <= left < float("inf") else None,
            "run_used": _spent(progress.spent),
        }
        if self._reporter.budget is not None:
            known = self._reporter.budget(self._job.issue)
            answer |= {
                "issue_used": _spent(known.of_issue),
                "issue_may_use": _limits(known.issue_limits),
                "day_used": _spent(known.of_day),
                "day_may_use": _limits(known.day_limits),
                "runs_with_turns": known.sessions,
                "runs_allowed": settings.max_sessions or None,
            }
        return answer

    async def history(self) -> Answer:
        """Return the earlier runs."""
        if self._reporter.history is None:
            raise ToolRefused("The history cannot be read here.")
        rows = await self._reporter.history(self._job.issue, RUNS_SHOWN + 1)
        earlier = [row for row in rows if row.run_id != self._job.run_id][:RUNS_SHOWN]
        return {"runs": [_shown_run(row) for row in earlier if row.issue_id == self._job.issue.id]}

    async def pull_request(self) -> Answer:
        """Ask the forge for the pull request of the run's branch."""
        progress, remote = self._progress(), self._context.remote
        if remote is None or remote.forge is None or progress.branch is None:
            raise ToolRefused("This workflow opens no pull requests.")
        request = progress.pull_request or await remote.forge.find(progress.branch)
        if request is None:
            return {"branch": progress.branch, "state": "there is no pull request yet"}
        quotes = self._quotes()
        return quotes.explained(await shown_pull_request(remote.forge, request, quotes.quote))

    def _quotes(self) -> _Quotes:
        return _Quotes(Fence() if self._context.settings.trust.fences else None)

    def _say(self, word: Callable[[], None]) -> None:
        try:
            word()
        except WordRefused as exc:
            raise ToolRefused(str(exc)) from None


def _named(issue: Issue) -> dict[str, Any]:
    return {
        "identifier": issue.identifier,
        "title": on_one_line(issue.shown_title),
        "state": issue.state,
        "url": issue.url,
        "labels": [on_one_line(label) for label in issue.labels],
        "assignee": None if issue.assignee is None else on_one_line(issue.assignee),
        "blocked_by": [blocker.identifier for blocker in issue.blocked_by],
    }


def _spent(spent: Spending) -> dict[str, Any]:
    known = spent.rounded()
    return {"tokens": known.tokens, "credits": known.credits, "cost_usd": known.cost_usd}


def _limits(limits: Mapping[str, float]) -> Mapping[str, float] | str:
    return limits or "no limit is set"


def _shown_run(row: HistoryRow) -> dict[str, Any]:
    answer = row.summary.answer
    return {
        "run": row.run_id,
        "status": row.status.value,
        "attempt": row.attempt,
        "turns": row.turns,
        "agent": row.agent,
        "started_at": row.started_at.isoformat(),
        "finished_at": None if row.finished_at is None else row.finished_at.isoformat(),
        "error_kind": None if row.error_kind is None else row.error_kind.value,
        "error": row.error,
        "commits": row.summary.commits,
        "last_answer": None if answer is None else cut(answer, ANSWER_SHOWN),
    }
