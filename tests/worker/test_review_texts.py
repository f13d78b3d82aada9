"""What people and agents are told of a review."""

from __future__ import annotations

from sortie.model import Delivery, Finish, Stage
from sortie.model.reviews import ReviewFinding, ReviewSeverity, ReviewVerdict, SelfReview
from sortie.worker.faults import about_review
from sortie.worker.proposal import FINDINGS_SHOWN, evidence_lines

HEAD = "0123456789abcdef0123"
GRAVE = ReviewFinding(text="It is wrong.\n\n@all: `x`", path="a`b.py", line=3)


def review(verdict: ReviewVerdict, *findings: ReviewFinding, **values: str | int) -> SelfReview:
    """Return a review of the commit."""
    return SelfReview(
        commit=HEAD,
        verdict=verdict,
        agent="claude-code",
        findings=findings,
        **values,  # type: ignore[arg-type]
    )


def body(told: SelfReview | None) -> str:
    """Return what stands of it in the body of a pull request."""
    delivery = Delivery(
        branch="b",
        base="main",
        host="local",
        stage=Stage.PUSHED,
        finish=Finish.DONE,
        head=HEAD,
        review=told,
    )
    return "\n\n".join(evidence_lines(delivery))


def test_an_approval_names_who_gave_it() -> None:
    """The agent, its model and the commit; advice stands below."""
    advice = ReviewFinding(text="shorter", severity=ReviewSeverity.SHOULD)

    text = body(review(ReviewVerdict.APPROVE, advice, model="opus", rounds=1))

    assert "Self-review of `0123456789ab` by claude-code (opus): approved after 1 round" in text
    assert "> should:\n> shorter" in text


def test_open_findings_stand_in_the_body() -> None:
    """As a quotation, place by place."""
    text = body(review(ReviewVerdict.REQUEST_CHANGES, GRAVE, rounds=2, omitted=3))

    assert "**changes requested**, and not made after 2 rounds of changes:" in text
    assert "> must, `a'b.py:3`:\n> It is wrong.\n>\n> @all: `x`" in text
    assert "and 3 findings more" in text


def test_many_findings_are_counted() -> None:
    """Beyond those that are shown."""
    text = body(review(ReviewVerdict.REQUEST_CHANGES, *[GRAVE] * (FINDINGS_SHOWN + 5)))

    assert text.count("It is wrong.") == FINDINGS_SHOWN
    assert "and 5 findings more" in text


def test_no_verdict_is_no_approval() -> None:
    """The body says why there is none, as text alone."""
    text = body(review(ReviewVerdict.NONE, reason="it said <b>*approved*</b>"))

    assert r"the review gave no verdict: it said \<b\>\*approved\*\</b\>" in text
    assert "approved." not in text


def test_a_review_of_another_commit_is_not_told() -> None:
    """It says nothing of this one."""
    told = review(ReviewVerdict.APPROVE)

    assert "Self-review" not in body(SelfReview(commit="ffff", verdict=told.verdict, agent="x"))
    assert "Self-review" not in body(None)


def test_an_agent_is_told_what_to_mend() -> None:
    """Finding by finding, with the further lines of each below it."""
    advice = ReviewFinding(text="shorter", severity=ReviewSeverity.SHOULD)

    text = about_review(review(ReviewVerdict.REQUEST_CHANGES, GRAVE, advice)).message

    assert "your commit 0123456789ab" in text
    assert "1. must, a`b.py:3: It is wrong.\n   \n   @all: `x`\n2. should: shorter" in text
