"""Secrets leave in no answer, however they are spelled."""

from __future__ import annotations

import json

from sortie.web.redaction import Redaction

SECRET = "p&ss\"word<'>"


def test_a_secret_is_found_in_html_too() -> None:
    """Escaped it looks otherwise, and is found all the same."""
    redaction = Redaction(lambda: frozenset({SECRET}))

    assert redaction.is_needed("x p&amp;ss&#34;word&lt;&#39;&gt; x")
    assert redaction.is_needed("x p&amp;ss&quot;word&lt;&#x27;&gt; x")
    assert not redaction.is_needed("x pass x")
    assert redaction(f"x {SECRET} x") == "x *** x"


def test_json_keeps_its_shape() -> None:
    """Texts are starred, names of fields and numbers are not."""
    redaction = Redaction(lambda: frozenset({"running", SECRET}))
    document = json.dumps({"running": [{"title": f"a {SECRET}", "turn": 3}, None]}).encode()

    assert json.loads(redaction.json(document)) == {
        "running": [{"title": "a ***", "turn": 3}, None]
    }
    assert redaction.json(b'{"a":1}') == b'{"a":1}'


def test_other_secrets_count_at_once() -> None:
    """After a reload the new ones are starred."""
    secrets = {"first-secret"}
    redaction = Redaction(lambda: frozenset(secrets))
    redaction("x")
    secrets.add("second-secret")

    assert redaction("first-secret second-secret") == "*** ***"
