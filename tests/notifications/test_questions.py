"""A question of an agent, as people are told of it."""

from __future__ import annotations

from datetime import UTC, datetime

from sortie import facts
from sortie.config.notifications import named
from sortie.model import HoldReason, RunId
from sortie.model.notifications import QUESTION
from sortie.notifications.maker import KnownIssues, NotificationMaker
from sortie.scheduler import records as rec
from tests.notifications.rig import target
from tests.store.records import an_issue
from tests.worker.rig import settings_of

ISSUE = an_issue("T-1")
ASKED = facts.QuestionAsked(
    issue=ISSUE,
    question_id=RunId("q-1"),
    run_id=RunId("run-1"),
    text="Which colour, @channel?",
    options=("red", "green"),
    default="green",
    deadline=datetime(2026, 11, 29, 12, 0, tzinfo=UTC),
)


def test_a_question_is_told_with_what_can_be_answered() -> None:
    """Once, under its own id, and not as a hold besides."""
    settings = settings_of().model_copy(update={"notifications": named([target()])})
    made = NotificationMaker(settings, lambda: "1")
    hold = rec.RecordHold(issue=ISSUE, reason=HoldReason.QUESTION, detail="Which colour?")
    known = KnownIssues(rule_of=lambda _issue: "docs")

    found = made.with_notifications([hold, ASKED], known)

    (record,) = [one for one in found if isinstance(one, rec.RecordNotification)]
    told = record.notification
    assert (told.key, told.event, told.rule, told.run_id) == (
        f"{QUESTION}:q-1",
        QUESTION,
        "docs",
        "run-1",
    )
    assert told.title == "T-1: a question"
    assert told.text == (
        "Which colour, @\u200bchannel?\n"
        "1. red\n"
        "2. green\n"
        "Without an answer before 2026-11-29 12:00 UTC it is: green\n"
        "Answer with a comment on the issue, or: sortie answer T-1 TEXT"
    )
