"""Settings as the file says them."""

from __future__ import annotations

import pytest
import yaml
from pydantic import SecretStr

from sortie.config.repository import VerifySettings
from sortie.config.rules import Conditions, PriorityCondition
from sortie.config.written import written


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (3, "3"),
        (3.0, "3"),
        (0.25, "0.25"),
        ("In Progress", "In Progress"),
        ("no", '"no"'),
        ("12", '"12"'),
        ("a: b", '"a: b"'),
        ("", '""'),
        ("two\nlines", '"two\\nlines"'),
        (("docs", "area/*"), '[docs, "area/*"]'),
        ({"Todo": 1}, "{Todo: 1}"),
        (SecretStr("s3cret"), "***"),
        (VerifySettings(), "{}"),
        (VerifySettings.model_validate({"timeout_ms": 1500}), "{timeout_ms: 1500}"),
        (
            Conditions(priority=PriorityCondition.model_validate({"in": [1, 2]})),
            "{priority: {in: [1, 2]}}",
        ),
    ],
)
def test_a_value_is_written_as_in_the_file(value: object, text: str) -> None:
    """On one line, with the keys and units of the file; secrets are hidden."""
    assert written(value) == text


ODD = ("yes", "Null", "~", "~/x", "./x", ".5", ".inf", "1e3", "2026-01-01", "0x1f", "-", "a #b")
SIGNS = ("a:b", "a, b", "[x]", "{x}", "&x", "*x", "!x", "|", "> x", "'x", '"x', "%x", "@x", "x ")


@pytest.mark.parametrize("text", [*ODD, *SIGNS, "é", "\u2028"])
def test_a_text_is_read_back_as_it_was(text: str) -> None:
    """Whatever YAML would take it for."""
    assert yaml.safe_load(f"[{written(text)}]") == [text]
    assert yaml.safe_load(written({text: text})) == {text: text}
