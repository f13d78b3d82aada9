"""Which decisions are told of, to whom, and in which words."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from sortie import facts
from sortie.config.notifications import named
from sortie.config.settings import ServerSettings
from sortie.model import ErrorKind, HoldReason, IssueId, PullRequest, RunId, RunStatus, Stage
from sortie.model import notifications as about
from sortie.notifications.maker import KnownIssues, NotificationMaker
from sortie.notifications.texts import harmless, link_of
from sortie.scheduler import Decision
from sortie.scheduler import records as rec
from tests.notifications.rig import target
from tests.store.records import a_delivery, an_issue, delivery, end, retry
from tests.worker.rig import settings_of

ISSUE = an_issue("T-1", url="https://tracker.example/T-1")
RUN = "run-1"
KNOWN = KnownIssues(lambda _run: (ISSUE, "docs"), lambda _issue: "docs")
HELD = rec.RecordHold(issue=ISSUE, reason=HoldReason.AGENT_BLOCKED, detail="which colour?")
OPENED = PullRequest(
    id="1",
    number=7,
    url="https://forge.example/pr/7",
    state="open",
    branch="b",
    base="main",
    title="Paint it",
)


def maker(*targets: Any, public_url: str | None = "https://sortie.example") -> NotificationMaker:
    settings = settings_of().model_copy(
        update={
            "notifications": named(targets),
            "server": ServerSettings(public_url=public_url),
        }
    )
    numbers = count(1)
    return NotificationMaker(settings, lambda: str(next(numbers)))


def told(decisions: list[Decision], *targets: Any) -> list[rec.RecordNotification]:
    found = maker(*(targets or (target(),))).with_notifications(decisions, KNOWN)
    assert [one for one in found if not isinstance(one, rec.RecordNotification)] == decisions
    return [one for one in found if isinstance(one, rec.RecordNotification)]


FAILED = end(RUN, RunStatus.FAILED, error_kind=ErrorKind.TURN_FAILED, error="no luck")


@pytest.mark.parametrize(
    ("decision", "event", "title"),
    [
        (FAILED, about.RUN_FAILED, "T-1: run failed"),
        (end(RUN, RunStatus.STALLED), about.RUN_FAILED, "T-1: run failed"),
        (HELD, about.HELD, "T-1: held"),
        (
            delivery(RUN, ISSUE, a_delivery(Stage.DELIVERED, opened=True, pull_request=OPENED)),
            about.PULL_REQUEST_OPENED,
            "T-1: pull request",
        ),
        (
            facts.ReactionEnded(
                issue=ISSUE, pull_request=OPENED.url, kinds=("checks",), result="exhausted"
            ),
            about.REACTION_EXHAUSTED,
            "T-1: needs a person",
        ),
        (
            facts.BudgetRunsLow(key="agent.max_tokens", used="80", limit="100", issue=ISSUE),
            about.BUDGET_WARNING,
            "T-1: little is left of a budget",
        ),
        (
            facts.BudgetSpent(key="budget.daily_credits", used="5", limit="5"),
            about.BUDGET_WARNING,
            "The budget of the day is spent",
        ),
        (
            facts.AgentLimited(agent="kiro", error="no more", seconds=60.0, resets_at=None),
            about.USAGE_LIMIT,
            "The agent's usage limit is reached",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_is_told(decision: Any, event: str, title: str) -> None:
    """Each has a notification before it, for targets that want its event and no other."""
    others = [one for one in about.NOTIFIED_EVENTS if one != event]
    wanting, other = target(name="a", events=[event]), target(name="b", events=others)

    (record,) = told([decision], wanting, other)

    assert (record.notification.event, record.notification.title) == (event, title)
    assert record.targets == ("a",)


@pytest.mark.parametrize(
    "decision",
    [
        end(RUN, RunStatus.SUCCEEDED),
        end(RUN, RunStatus.INTERRUPTED),
        end(RUN, RunStatus.CANCELLED),
        rec.RecordHold(issue=ISSUE, reason=HoldReason.OPERATOR, detail=""),
        rec.RecordHold(issue=ISSUE, reason=HoldReason.REACTION_EXHAUSTED, detail=""),
        rec.RecordHold(issue=ISSUE, reason=HoldReason.NO_CHANGE, detail="", again=True),
        delivery(RUN, ISSUE, a_delivery(Stage.DELIVERED, pull_request=OPENED)),
        retry(ISSUE),
    ],
    ids=str,
)
def test_what_is_not_told(decision: Any) -> None:
    """What went well, what a person asked for, and what another notification tells."""
    assert told([decision]) == []


def test_texts_say_what_happened_and_what_can_be_done() -> None:
    """With the issue, and links to what there is."""
    ((first), (second)) = told([FAILED, HELD])

    assert first.notification.text == (
        "A run failed: turn_failed: no luck\n"
        "The issue is held.\n"
        "sortie logs T-1 shows what the agent did."
    )
    assert second.notification.text == (
        "T-1 is held: the agent cannot go on without a person (which colour?).\n"
        "Answer by editing the issue, or do what is missing.\n"
        "sortie retry T-1 lets it run again; sortie explain T-1 says what else does."
    )
    assert second.notification.links == (
        ("Issue", "https://tracker.example/T-1"),
        ("Dashboard", "https://sortie.example/issues/T-1"),
    )
    assert first.notification.rule == second.notification.rule == "docs"
    assert first.notification.key == f"run_failed:{RUN}"


def test_targets_may_want_the_issues_of_rules_only() -> None:
    """What is about no issue is told to all of them."""
    docs, other = target(name="a", rules="docs"), target(name="b", rules=["default"])
    spent = facts.BudgetSpent(key="budget.daily_credits", used="5", limit="5")

    of_issue, of_day = told([HELD, spent], docs, other)

    assert (of_issue.targets, of_day.targets) == (("a",), ("a", "b"))


def test_a_run_that_nobody_knows_is_not_told_of() -> None:
    """At a start the runs of an earlier daemon are no failures."""
    made = maker(target())

    assert made.recovered([FAILED]) == (FAILED,)
    assert [type(one) for one in made.recovered([HELD])] == [
        rec.RecordNotification,
        rec.RecordHold,
    ]


def test_no_secret_is_told() -> None:
    """Wherever in a text it stands."""
    made = maker(target())
    made.hide(frozenset({"hunter2-hunter2"}))
    issue = an_issue("T-2", title="hunter2-hunter2", url="https://x.example/hunter2-hunter2")
    hold = rec.RecordHold(issue=issue, reason=HoldReason.NO_CHANGE, detail="with hunter2-hunter2")

    assert "hunter2" not in str(made.with_notifications([hold], KnownIssues())[0])


def test_without_targets_nothing_is_made() -> None:
    """The decisions stay as they are."""
    made = maker()

    assert made.with_notifications([HELD], KNOWN) == [HELD]
    assert made.alone(about.DAEMON_TROUBLE, ("a", "b")) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Mend @channel and <!here>", "Mend @\u200bchannel and \u2039!here\u203a"),
        ("<@U123> <users/all>", "\u2039@\u200bU123\u203a \u2039users/all\u203a"),
        ("two\nlines\r\n\tand more", "two lines and more"),
        ("turned \u202earound\u202c and \x1b[31mred", "turned around and [31mred"),
        ("a\ud800b", "ab"),
        ("word " * 200, ("word " * 100).strip()),
    ],
)  # fmt: skip
def test_words_from_outside_call_nobody(text: str, shown: str) -> None:
    """Mentions, line ends, controls and length are taken out of them."""
    assert harmless(text) == shown


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://tracker.example/T-1?x=1#y", True),
        ("javascript:alert(1)", False),
        ("https://x.example/ <!channel>", False),
        ("https://x.example/<!channel>", False),
        (None, False),
    ],
)
def test_only_addresses_of_pages_are_links(address: str | None, kept: bool) -> None:
    """What an issue says of itself is an address, or it is left out."""
    assert link_of(address) == (address if kept else None)


def test_ids_are_those_of_issues_and_runs() -> None:
    """A notification names its issue and run for programs."""
    (record,) = told([FAILED])

    assert record.notification.run_id == RunId(RUN)
    assert record.notification.issue is not None
    assert record.notification.issue.id == IssueId("id-T-1")
