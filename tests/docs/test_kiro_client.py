"""The page of the client names what there is, and says what is refused."""

from __future__ import annotations

from dataclasses import fields
from types import FunctionType
from typing import Any

import pytest

import sortie.kiro
from sortie.kiro import KiroAgentOptions, KiroSDKClient, KiroSDKError, OptionError, query
from tests.docs.pages import ROOT, page, table, words

TEXT = page("kiro-client.md")
ROWS = {name: row["is"] for row in table(TEXT, "name") for name in words(row["name"])}
EXAMPLES = {path.stem for path in (ROOT / "docs/kiro-client").glob("*.py")}
REFUSED: dict[str, Any] = {"temperature": 0.5, "max_turns": 1}


def test_every_name_has_its_line() -> None:
    """Each public name, method, option and example is in the table, and nothing else."""
    names = {*sortie.kiro.__all__, *EXAMPLES}
    names |= {f"KiroAgentOptions.{part.name}" for part in fields(KiroAgentOptions)}
    names |= {
        f"KiroSDKClient.{name}"
        for name, thing in vars(KiroSDKClient).items()
        if not name.startswith("_") and isinstance(thing, FunctionType | property)
    }

    assert set(ROWS) == names


def test_what_is_refused_is_refused() -> None:
    """An option that the table calls refused raises, and says what the table says."""
    assert {name for name, state in ROWS.items() if state == "refused"} == {
        f"KiroAgentOptions.{name}" for name in REFUSED
    }
    for name, value in REFUSED.items():
        with pytest.raises(OptionError, match=name):
            query(prompt="x", options=KiroAgentOptions(**{name: value}))


def test_every_error_has_its_line() -> None:
    """The table of errors holds each of the family."""
    written = {name for row in table(TEXT, "error") for name in words(row["error"])}
    family = {
        name
        for name in sortie.kiro.__all__
        if isinstance(thing := getattr(sortie.kiro, name), type)
        and issubclass(thing, KiroSDKError)
        and thing is not KiroSDKError
    }

    assert written == family
