"""Deliveries as they stand in a row, of this version and of others."""

from __future__ import annotations

import json

from sortie.model import Delivery, Finish, Stage
from sortie.model.reviews import ReviewFinding, ReviewSeverity, ReviewVerdict, SelfReview
from sortie.store.rows import delivery_from_json, delivery_to_json

DELIVERY = Delivery(
    branch="b",
    base="main",
    host="local",
    stage=Stage.PROVEN,
    finish=Finish.DONE,
    head="0123",
    review=SelfReview(
        commit="0123",
        verdict=ReviewVerdict.REQUEST_CHANGES,
        agent="kiro",
        model="m",
        rounds=1,
        findings=(
            ReviewFinding(text="one", path="a", line=1),
            ReviewFinding(text="two", severity=ReviewSeverity.SHOULD),
        ),
        omitted=2,
    ),
)


def test_a_review_is_read_back() -> None:
    """With its findings."""
    assert delivery_from_json(delivery_to_json(DELIVERY)) == DELIVERY


def test_a_row_without_a_review_is_read() -> None:
    """As an earlier version wrote it; and what a later one adds is ignored."""
    row = json.loads(delivery_to_json(DELIVERY))
    del row["review"]
    row["later"] = {"more": 1}

    found = delivery_from_json(json.dumps(row))

    assert found.review is None
    assert found.head == "0123"
