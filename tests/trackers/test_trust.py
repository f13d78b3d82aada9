"""Whose words count: what the judge makes of authors, labels and edits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import trio
from msgspec.structs import replace

from sortie.config.trust import TrustSettings
from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.model.trust import TRUST_LABEL, Edit, Endorsement, Right, Trust, login_key
from sortie.trackers.trust import REFUSAL_LIFE, RIGHTS_LIFE, Judge
from tests.trackers.fake import FakeTracker

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
WRITE = TrustSettings(authors="write")


class PeopledTracker(FakeTracker):
    """A tracker that knows who may what, and counts who was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.rights = {"ann": Right.WRITE, "kim": Right.MEMBERS}
        self.asked: list[str] = []
        self.error: TrackerError | None = None
        self.label: Endorsement | None = None
        self.labels_asked = 0

    async def may(self, author_id: str, right: Right) -> bool:
        await trio.lowlevel.checkpoint()
        self.asked.append(author_id)
        if self.error is not None:
            raise self.error
        return self.rights.get(author_id) in (right, Right.WRITE)

    async def endorsement(self, issue: Issue, label: str) -> Endorsement | None:
        await trio.lowlevel.checkpoint()
        self.labels_asked += 1
        if self.error is not None:
            raise self.error
        return self.label


def issue_by(author: str | None, **changes: object) -> Issue:
    """Return an issue that somebody has written."""
    plain = Issue(
        id=IssueId("A-1"),
        identifier="A-1",
        title="A title",
        state="Todo",
        author=author,
        author_id=author,
        updated_at=NOON,
    )
    return replace(plain, **changes)


@pytest.fixture
def tracker() -> PeopledTracker:
    return PeopledTracker()


async def trust_of(judge: Judge, issue: Issue) -> Trust:
    (judged,) = await judge.judged([issue])
    assert judged.trust is not None
    return judged.trust


async def test_without_trust_nobody_is_asked_about(tracker: PeopledTracker) -> None:
    """The default changes nothing: the same issues, and no request."""
    issue = issue_by("mallory", comments=(Comment(author="eve", author_id="eve", body="x"),))

    judged = await Judge(tracker, TrustSettings()).judged([issue])

    assert judged[0] is issue
    assert tracker.asked == []


@pytest.mark.parametrize(
    ("rule", "author", "trusted"),
    [
        ("write", "ann", True),
        ("write", "kim", False),
        ("write", "mallory", False),
        ("write", None, False),
        ("write", "  ", False),
        ("members", "ann", True),
        ("members", "kim", True),
        ("members", "mallory", False),
        (("mallory", "Bob"), "MALLORY", True),
        (("mallory",), "ann", False),
        (("kim",), "\u212aim", False),  # the sign of kelvin, which case folding makes a k
        (("kim",), "k\u200bim", False),
        (("kim",), None, False),
        ("anyone", None, True),
    ],
)
async def test_authors_are_trusted_by_the_rule(
    tracker: PeopledTracker, rule: str | tuple[str, ...], author: str | None, *, trusted: bool
) -> None:
    """Of everybody who could pretend to be somebody else, none is."""
    judge = Judge(tracker, TrustSettings(authors=rule, comments="write"))

    trust = await trust_of(judge, issue_by(author))

    assert (trust.distrust == "") is trusted
    assert trust.holds


async def test_the_sentence_says_who_and_what_to_do(tracker: PeopledTracker) -> None:
    """Both are told to the operator."""
    trust = await trust_of(Judge(tracker, WRITE), issue_by("mallory"))

    assert trust.distrust == (
        "its author, mallory, may not write to the project (trust.authors);"
        " somebody who is trusted may add the label sortie:trusted"
    )


async def test_comments_of_others_are_left_out(tracker: PeopledTracker) -> None:
    """Of an issue of somebody who is trusted, too; whose they were is kept."""
    said = tuple(
        Comment(author=name, author_id=name, body=f"by {name}") for name in ("ann", "eve", "kim")
    )
    nobody = Comment(author="ann", body="an integration that calls itself ann")

    (judged,) = await Judge(tracker, WRITE).judged([issue_by("ann", comments=(*said, nobody))])

    assert [comment.body for comment in judged.comments] == ["by ann"]
    assert judged.trust == Trust(left_out=("eve", "kim", "ann"))


async def test_comments_have_a_rule_of_their_own(tracker: PeopledTracker) -> None:
    """Anyone's, where only the authors of issues are asked for, and the other way round."""
    comment = Comment(author="eve", author_id="eve", body="hello")
    open_ones = TrustSettings(authors="write", comments="anyone")
    closed_ones = TrustSettings(authors="anyone", comments=("ann",))

    (first,) = await Judge(tracker, open_ones).judged([issue_by("eve", comments=(comment,))])
    (second,) = await Judge(tracker, closed_ones).judged([issue_by("eve", comments=(comment,))])

    assert first.trust is not None
    assert second.trust is not None
    assert (len(first.comments), bool(first.trust.distrust)) == (1, True)
    assert (len(second.comments), bool(second.trust.distrust)) == (0, False)


async def test_each_person_is_asked_about_once_an_hour(
    tracker: PeopledTracker, autojump_clock: trio.testing.MockClock
) -> None:
    """A backlog of 300 issues by 40 people costs 40 requests an hour, however often it is read."""
    judge = Judge(tracker, WRITE)
    issues = [
        issue_by(f"user-{n % 40}", id=IssueId(f"A-{n}"), identifier=f"A-{n}") for n in range(300)
    ]

    for _ in range(100):
        first = await judge.judged(issues)
        await trio.sleep(30)
    again = await judge.judged(issues)

    assert len(tracker.asked) == 40
    assert all(one is other for one, other in zip(first, again, strict=True))
    await trio.sleep(RIGHTS_LIFE)
    await judge.judged(issues)
    assert len(tracker.asked) == 80


async def test_what_is_not_told_is_not_trusted_and_asked_again(
    tracker: PeopledTracker, autojump_clock: trio.testing.MockClock
) -> None:
    """A key that may not ask costs one request in five minutes; once it may, all is well."""
    judge = Judge(tracker, WRITE)
    tracker.error = TrackerError(TrackerErrorKind.PERMISSION, "the key may not ask")
    issues = [issue_by(name, id=IssueId(name)) for name in ("ann", "kim", "lee")]

    for _ in range(10):
        judged = await judge.judged(issues)
        await trio.sleep(REFUSAL_LIFE / 20)
    assert len(tracker.asked) == 1
    assert all(one.trust and "the key may not ask" in one.trust.distrust for one in judged)

    tracker.error = None
    await trio.sleep(REFUSAL_LIFE)
    (ann, kim, _) = await judge.judged(issues)
    assert ann.trust == Trust()
    assert kim.trust
    assert "may not write" in kim.trust.distrust


async def test_a_right_is_not_believed_longer_than_it_may(
    tracker: PeopledTracker, autojump_clock: trio.testing.MockClock
) -> None:
    """Who was trusted is not, once the tracker does not tell any more."""
    judge = Judge(tracker, WRITE)
    assert await trust_of(judge, issue_by("ann")) == Trust()

    tracker.error = TrackerError(TrackerErrorKind.UNAVAILABLE, "down")
    await trio.sleep(RIGHTS_LIFE + 1)

    assert "not known to be trusted: down" in (await trust_of(judge, issue_by("ann"))).distrust


async def test_a_pause_of_the_tracker_is_passed_on(tracker: PeopledTracker) -> None:
    """The guard has to know of it."""
    tracker.error = TrackerError(TrackerErrorKind.UNAVAILABLE, "limit", retry_after=60.0)

    with pytest.raises(TrackerError, match="limit"):
        await Judge(tracker, WRITE).judged([issue_by("ann")])


async def test_a_tracker_that_does_not_tell_trusts_nobody() -> None:
    """Neither a right nor a label counts."""
    labelled = issue_by("ann", labels=(TRUST_LABEL,))

    trust = await trust_of(Judge(FakeTracker(), WRITE), labelled)

    assert "does not tell of people" in trust.distrust
    assert "does not tell who has set it" in trust.distrust


@pytest.mark.parametrize(
    ("label", "flaw"),
    [
        (Endorsement(by="ann", at=NOON), ""),
        (Endorsement(by="mallory", at=NOON), "mallory has set it, who may not write"),
        (Endorsement(by=None, at=NOON), "somebody has set it, who cannot be told"),
        (None, "does not tell who has set it"),
        (
            Endorsement(by="ann", at=NOON, edits=(Edit(by="mallory", at=NOON),)),
            "mallory has changed title or description since",
        ),
        (
            Endorsement(by="ann", at=NOON, edits=(Edit(by=None, at=NOON + timedelta(seconds=1)),)),
            "somebody has changed title or description since",
        ),
        (
            Endorsement(
                by="ann", at=NOON, edits=(Edit(by="mallory", at=NOON - timedelta(seconds=1)),)
            ),
            "",
        ),
        (
            Endorsement(by="ann", at=NOON, edits=(Edit(by="ann", at=NOON + timedelta(hours=1)),)),
            "",
        ),
    ],
)
async def test_a_label_counts_where_somebody_trusted_vouches_for_the_text(
    tracker: PeopledTracker, label: Endorsement | None, flaw: str
) -> None:
    """Whoever else has set it, or has changed the text since, takes the trust away."""
    tracker.label = label

    trust = await trust_of(Judge(tracker, WRITE), issue_by("mallory", labels=("Sortie:Trusted",)))

    assert flaw in trust.distrust
    assert bool(trust.distrust) is bool(flaw)


async def test_a_changed_text_is_seen_where_the_tracker_does_not_tell_of_edits(
    tracker: PeopledTracker,
) -> None:
    """Since the label was first seen; a label that is set anew counts for the new text."""
    judge = Judge(tracker, WRITE)
    tracker.label = Endorsement(by="ann", at=NOON, tells_edits=False)
    issue = issue_by("mallory", labels=(TRUST_LABEL,), description="good")
    assert await trust_of(judge, issue) == Trust()

    edited = replace(issue, description="evil")
    assert "have changed since" in (await trust_of(judge, edited)).distrust
    assert "have changed since" in (await trust_of(judge, edited)).distrust

    tracker.label = Endorsement(by="ann", at=NOON + timedelta(hours=1), tells_edits=False)
    assert await trust_of(judge, replace(edited, updated_at=NOON + timedelta(hours=1))) == Trust()


async def test_a_label_is_asked_about_when_the_issue_has_changed(
    tracker: PeopledTracker, autojump_clock: trio.testing.MockClock
) -> None:
    """And every ten minutes; meanwhile it costs nothing."""
    judge = Judge(tracker, WRITE)
    tracker.label = Endorsement(by="ann", at=NOON)
    issue = issue_by("mallory", labels=(TRUST_LABEL,))
    for _ in range(5):
        await judge.judged([issue])
    assert tracker.labels_asked == 1

    await judge.judged([replace(issue, description="other")])
    assert tracker.labels_asked == 2
    await trio.sleep(700)
    await judge.judged([replace(issue, description="other")])
    assert tracker.labels_asked == 3


async def test_other_settings_count_at_once(tracker: PeopledTracker) -> None:
    """A reload that trusts others is obeyed by the next answer."""
    judge = Judge(tracker, WRITE)
    assert (await trust_of(judge, issue_by("kim"))).distrust

    judge.settings = TrustSettings(authors="members")

    assert await trust_of(judge, issue_by("kim")) == Trust()


def test_logins_are_compared_by_their_ascii_letters() -> None:
    """No other letter is taken for one of them."""
    assert login_key(" Ann-Lee ") == "ann-lee"
    assert login_key("\u0130") == "\u0130"
    assert login_key("\u017fam") != login_key("sam")
