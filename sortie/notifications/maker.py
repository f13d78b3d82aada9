"""Makes notifications of the scheduler's decisions, and picks their targets; pure.

A notification is put before the decision that it tells of. It is a record, so the journal commits
it together with the records of the same round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sortie import facts
from sortie.config.notifications import NotificationTarget
from sortie.config.rules import DEFAULT_RULE
from sortie.config.settings import Settings
from sortie.model import HoldReason, Issue, IssueId, RunId, RunStatus
from sortie.model import notifications as about
from sortie.model.notifications import Notice, NotifiedIssue
from sortie.model.numbers import span
from sortie.model.secrets import redactor, unchanged
from sortie.notifications import texts
from sortie.scheduler import Decision
from sortie.scheduler import records as rec

_FAILED = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT, RunStatus.STALLED})
_TOLD_OTHERWISE = frozenset(
    {HoldReason.OPERATOR, HoldReason.REACTION_EXHAUSTED, HoldReason.QUESTION}
)
"""Holds that a person has asked for, or that another notification tells of."""


class KnownIssues(Struct, frozen=True):
    """What a decision does not say itself: the issue of a run and the rule that decides for it,
    None where the run is not known; and the rule of an issue in hand, "" for the top level."""

    of_run: Callable[[RunId], tuple[Issue, str] | None] = lambda _: None
    rule_of: Callable[[IssueId], str] = lambda _: ""


class NotificationMaker:
    """Makes notifications under the settings in force; ``new_key`` returns a key that no other
    notification has."""

    def __init__(self, settings: Settings, new_key: Callable[[], str]) -> None:
        self._new_key = new_key
        self._redact: Callable[[str], str] = unchanged
        self.use(settings)

    def use(self, settings: Settings) -> None:
        """Go by other settings."""
        self._targets: tuple[NotificationTarget, ...] = settings.notifications
        self._public_url = settings.server.public_url

    def hide(self, secrets: frozenset[str]) -> None:
        """Take these secrets out of all texts."""
        self._redact = redactor(secrets)

    def wants(self, event: str) -> bool:
        """Tell whether any target is told of an event."""
        return any(event in target.events for target in self._targets)

    def with_notifications(
        self, decisions: Sequence[Decision], known: KnownIssues
    ) -> list[Decision]:
        """Return decisions with the records of their notifications."""
        if not self._targets:
            return list(decisions)
        found: list[Decision] = []
        for decision in decisions:
            found += self._records(decision, decisions, known)
            found.append(decision)
        return found

    def recovered(self, records: Sequence[rec.Record]) -> tuple[rec.Record, ...]:
        """Return what a start commits of an earlier daemon, with its notifications."""
        found = self.with_notifications(records, KnownIssues())
        return tuple(one for one in found if isinstance(one, rec.Record))

    def alone(
        self, event: str, told: tuple[str, str], key: str | None = None
    ) -> rec.RecordNotification | None:
        """Return a notification that is about no issue, None where no target wants it."""
        return self._record(self._made(event, told, None, key=key))

    def _records(
        self, decision: Decision, round_: Sequence[Decision], known: KnownIssues
    ) -> Iterator[rec.RecordNotification]:
        made = self._of(decision, round_, known)
        if made is None or not self.wants(made.event):
            return
        if made.issue is not None and made.run_id is None:
            made = replace(made, rule=known.rule_of(IssueId(made.issue.id)))
        if (record := self._record(made)) is not None:
            yield record

    def _of(
        self, decision: Decision, round_: Sequence[Decision], known: KnownIssues
    ) -> Notice | None:
        """Return what is to be told of a decision, None where that is nothing."""
        match decision:
            case rec.RecordExit(run_id=run_id, status=status) if status in _FAILED:
                if (run := known.of_run(run_id)) is None:
                    return None
                issue, rule = run
                follows = _follows(issue, round_)
                error, kind = decision.error, decision.error_kind
                told = texts.run_failed(issue, status, kind, error, follows)
                key = f"{about.RUN_FAILED}:{run_id}"
                made = self._made(about.RUN_FAILED, told, issue, key=key)
                return replace(made, rule=rule, run_id=run_id)
            case rec.RecordHold(again=False, issue=issue, reason=reason, detail=detail):
                if reason in _TOLD_OTHERWISE:
                    return None
                return self._made(about.HELD, texts.held(issue, reason, detail), issue)
            case rec.RecordDelivery(run_id=run_id, delivery=delivery) if delivery.opened:
                run, request = known.of_run(run_id), delivery.pull_request
                if run is None or request is None:
                    return None
                issue, rule = run
                told = texts.pull_request_opened(issue, request.title)
                key = f"{about.PULL_REQUEST_OPENED}:{issue.id}:{request.url}"
                event, url = about.PULL_REQUEST_OPENED, request.url
                made = self._made(event, told, issue, key=key, request=url)
                return replace(made, rule=rule, run_id=run_id)
            case facts.QuestionAsked(issue=issue):
                made = self._made(
                    about.QUESTION,
                    texts.question_asked(decision),
                    issue,
                    key=f"{about.QUESTION}:{decision.question_id}",
                )
                rule = known.rule_of(issue.id)
                return replace(made, rule=rule, run_id=decision.run_id)
            case facts.ReactionEnded(result="exhausted", issue=issue):
                event, told = about.REACTION_EXHAUSTED, texts.reaction_exhausted(decision)
                return self._made(event, told, issue, request=decision.pull_request)
            case facts.BudgetRunsLow(issue=issue):
                return self._made(about.BUDGET_WARNING, texts.budget_low(decision), issue)
            case facts.BudgetSpent():
                return self._made(about.BUDGET_WARNING, texts.budget_spent(decision), None)
            case facts.AgentLimited():
                return self._made(about.USAGE_LIMIT, texts.usage_limited(decision), None)
            case _:
                return None

    def _made(
        self,
        event: str,
        told: tuple[str, str],
        issue: Issue | None,
        *,
        key: str | None = None,
        request: str | None = None,
    ) -> Notice:
        dashboard = texts.dashboard_link(self._public_url, issue)
        links = {
            "Pull request": texts.link_of(request),
            "Issue": None if issue is None else texts.link_of(issue.url),
            "Dashboard": dashboard,
        }
        title, text = map(self._redact, told)
        return Notice(
            key=key or f"{event}:{self._new_key()}",
            event=event,
            title=title,
            text=text,
            issue=None if issue is None else self._issue(issue),
            links=tuple((name, self._redact(link)) for name, link in links.items() if link),
        )

    def _issue(self, issue: Issue) -> NotifiedIssue:
        link = texts.link_of(issue.url)
        return NotifiedIssue(
            id=issue.id,
            identifier=self._redact(issue.identifier),
            title=self._redact(texts.harmless(issue.title, texts.TITLE_LENGTH)),
            url=None if link is None else self._redact(link),
        )

    def _record(self, made: Notice) -> rec.RecordNotification | None:
        targets = tuple(target.name or "" for target in self._targets if _is_for(target, made))
        return rec.RecordNotification(notification=made, targets=targets) if targets else None


def _is_for(target: NotificationTarget, made: Notice) -> bool:
    if made.event not in target.events:
        return False
    if target.rules is None or made.issue is None:
        return True
    return (made.rule or DEFAULT_RULE) in target.rules


def _follows(issue: Issue, round_: Sequence[Decision]) -> str:
    """Say what the scheduler has decided for an issue whose run has failed."""
    for decision in round_:
        match decision:
            case rec.RecordRetry() if decision.issue.id == issue.id:
                return f"It is tried again in {span(decision.delay)}."
            case rec.RecordHold() if decision.issue.id == issue.id:
                return "The issue is held."
            case _:
                pass
    return ""
