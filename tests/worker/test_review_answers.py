"""The verdict in a reviewer's last message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.model.reviews import FINDINGS_LIMIT, ReviewFinding, ReviewSeverity, ReviewVerdict
from sortie.worker.review_answers import (
    FINDING_TEXT_LIMIT,
    PATH_SHOWN,
    AnsweredVerdict,
    verdict_in,
)

SHOULD = {"severity": "should", "text": "shorter"}
MUST = {"path": "a.py", "line": 3, "severity": "must", "text": "It is wrong."}


def block(document: Any) -> str:
    """Return a fenced block of JSON."""
    return f"```json\n{json.dumps(document, indent=1)}\n```"


def answer(verdict: str, *findings: Any) -> dict[str, Any]:
    """Return a verdict as it is to be written."""
    return {"verdict": verdict, "findings": list(findings)}


def told(text: str) -> AnsweredVerdict:
    """Return the verdict of a message that has one."""
    found = verdict_in(text, str)
    assert isinstance(found, AnsweredVerdict), found
    return found


@pytest.mark.parametrize(
    "text",
    [
        block(answer("approve")),
        json.dumps(answer("approve")),
        f"I have read it.\n\n{block(answer('approve'))}\n\nThat is all.",
        f"```diff\n-a\n```\n{block(answer('approve'))}",
        f"```\nnot this\n```json\n```\n{block(answer('approve'))}",
        block(answer("approve") | {"confidence": 1}),
    ],
)
def test_an_approval_is_found(text: str) -> None:
    """In its one block, or alone, whatever stands around it."""
    assert told(text) == AnsweredVerdict(ReviewVerdict.APPROVE)


def test_findings_are_kept_with_their_places() -> None:
    """The grave ones first; what a reviewer leaves out is not known."""
    found = told(block(answer("request_changes", SHOULD, MUST)))

    assert found.verdict is ReviewVerdict.REQUEST_CHANGES
    assert found.findings == (
        ReviewFinding(text="It is wrong.", severity=ReviewSeverity.MUST, path="a.py", line=3),
        ReviewFinding(text="shorter", severity=ReviewSeverity.SHOULD),
    )
    assert [finding.place for finding in found.findings] == ["a.py:3", ""]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "exactly one block"),
        ("I approve.", "exactly one block"),
        (f"{block(answer('approve'))}\n{block(answer('approve'))}", "exactly one block"),
        ("```json\n" + json.dumps(answer("approve")), "exactly one block"),
        (f"Here: {json.dumps(answer('approve'))}", "exactly one block"),
        (block([answer("approve")]), "Expected `object`"),
        (block(answer("approved")), "verdict"),
        (block({"verdict": "approve"}), "findings"),
        (block({"findings": []}), "verdict"),
        (block(answer("request_changes")), "no finding"),
        (block(answer("request_changes", MUST | {"text": " "})), "no finding"),
        (block(answer("request_changes", MUST | {"line": "3"})), "line"),
        (block(answer("request_changes", MUST | {"line": -1})), "line"),
        (block(answer("request_changes", MUST | {"severity": "nit"})), "severity"),
        (block(answer("approve", MUST)), "approves"),
        ("```json\n{,}\n```", "JSON is malformed"),
        ("{" + '"a":[' * 100_000, ""),
        ('{"verdict": "approve", "findings": [], "x": "\ud800"}', ""),
    ],
)
def test_anything_else_is_no_verdict(text: str, fault: str) -> None:
    """And what is wrong with it is said on one line."""
    found = verdict_in(text, str)

    assert isinstance(found, str)
    assert fault in found
    assert len(found) <= 200
    assert found.isprintable()


def test_what_is_kept_is_bounded() -> None:
    """Findings, their texts and paths; the grave ones are kept before others."""
    long = {"severity": "should", "text": "x" * 10_000, "path": "p" * 1000}
    found = told(block(answer("request_changes", *[long] * 60, MUST)))

    assert len(found.findings) == FINDINGS_LIMIT
    assert found.omitted == 61 - FINDINGS_LIMIT
    assert found.findings[0].text == "It is wrong."
    assert len(found.findings[1].text) <= FINDING_TEXT_LIMIT
    assert len(found.findings[1].path) <= PATH_SHOWN


def test_a_secret_that_json_hides_is_taken_out() -> None:
    """Also where it is written with escapes."""
    written = r'{"verdict":"request_changes","findings":[{"severity":"must","text":"s\u0065cret"}]}'

    found = verdict_in(written, lambda text: text.replace("secret", "***"))

    assert isinstance(found, AnsweredVerdict)
    assert found.findings[0].text == "***"


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    """Whatever a reviewer says, it is a verdict or a fault on one line."""
    found = verdict_in(text, str)

    assert isinstance(found, AnsweredVerdict) or found.isprintable()


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)
_FINDINGS = st.lists(
    st.fixed_dictionaries(
        {"severity": st.sampled_from(["must", "should"]), "text": st.text()},
        optional={"path": st.none() | st.text(), "line": st.none() | st.integers(0, 9999)},
    ),
    max_size=4,
)


@given(
    st.fixed_dictionaries(
        {"verdict": st.sampled_from(["approve", "request_changes"]) | _JSON},
        optional={"findings": _FINDINGS | _JSON},
    )
)
def test_only_what_is_in_the_form_is_a_verdict(document: dict[str, Any]) -> None:
    """Each verdict is one of two words that was written; texts have nothing that steers."""
    found = verdict_in(json.dumps(document), str)

    if isinstance(found, AnsweredVerdict):
        assert found.verdict.value == document["verdict"]
        grave = [f for f in found.findings if f.severity is ReviewSeverity.MUST]
        if found.verdict is ReviewVerdict.APPROVE:
            assert not grave
        else:
            assert found.findings
        for finding in found.findings:
            assert all(c.isprintable() or c in "\n\t" or ord(c) > 0x9F for c in finding.text)
            assert "\n" not in finding.path
