"""Cleaning: no secret, nothing endless, nothing but plain data reaches a renderer."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sortie.telemetry.log.renderers import JsonRenderer, TextRenderer
from sortie.telemetry.log.sanitize import ITEM_LIMIT, LOG_VALUE_LIMIT, Sanitizer


class Colour(StrEnum):
    RED = "red"


SECRETS = st.text(st.characters(codec="ascii"), min_size=4, max_size=40).filter(
    lambda text: len(text.strip()) >= 4 and not set(text) <= set(" *")
)


@given(secret=SECRETS, before=st.text(max_size=20), after=st.text(max_size=20))
def test_a_secret_is_shown_nowhere(secret: str, before: str, after: str) -> None:
    """However deep or encoded it stands, a registered secret is not in the cleaned event."""
    bare = secret.strip()
    assume(bare not in "*" * 3 and bare not in before + "***" + after)
    text = f"{before}{secret}{after}"
    event = {
        "event": "it.happened",
        "plain": text,
        "repr": repr(text),
        "json": json.dumps(text),
        "url": quote(text, safe=""),
        "nested": [{"key": {"inner": (text,)}}, {text: 1}],
        "error": ValueError(text),
        "raw": text.encode(),
    }

    cleaned = Sanitizer([secret])(None, "info", dict(event))

    assert all(bare not in leaf for leaf in leaves(cleaned))


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for pair in value.items() for part in pair for leaf in leaves(part)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [str(value)]


@pytest.mark.parametrize(
    "spell",
    [
        str,
        repr,
        json.dumps,
        lambda secret: json.dumps(secret, ensure_ascii=False),
        lambda secret: quote(secret, safe=""),
    ],
    ids=["plain", "repr", "json", "json as it is", "url"],
)
@pytest.mark.parametrize(
    "secret", ['p"w\\d', "line\none", "pässwörd", "a/b+c=", " spaced\n"], ids=ascii
)
def test_a_secret_is_known_in_every_spelling(secret: str, spell: Callable[[str], str]) -> None:
    """A secret in a repr, in JSON or in a URL is one pair of stars, quotes aside."""
    spelled = spell(secret.strip())

    cleaned = Sanitizer([secret])(None, "info", {"value": f"<{spelled}>"})

    assert str(cleaned["value"]).translate({ord("'"): None, ord('"'): None}) == "<***>"


def test_the_longer_of_two_secrets_goes_first() -> None:
    """A secret that begins like another one leaves no rest of itself behind."""
    cleaned = Sanitizer(["hunter", "hunter2secret"])(None, "info", {"value": "is hunter2secret"})

    assert cleaned == {"value": "is ***"}


def test_a_secret_goes_wherever_it_stands() -> None:
    """One that a message repeats is not left the second time."""
    cleaned = Sanitizer(["hunter2"])(None, "info", {"value": "hunter2 and hunter2, hunter2hunter2"})

    assert cleaned == {"value": "*** and ***, ******"}


def test_a_secret_at_the_cut_leaves_no_half_of_itself() -> None:
    """Redaction comes before cutting."""
    text = "x" * (LOG_VALUE_LIMIT // 2 - 20) + "SECRETSECRET" * 10 + "x" * LOG_VALUE_LIMIT

    cleaned = Sanitizer(["SECRETSECRET"])(None, "info", {"value": text})

    assert "SECRET" not in str(cleaned["value"])


def test_a_number_that_is_a_secret_is_redacted() -> None:
    """A secret made of digits is not shown as a number either."""
    cleaned = Sanitizer(["424242"])(None, "info", {"port": 424242, "delay": 10})

    assert cleaned == {"port": "***", "delay": 10}


def test_the_name_of_an_event_is_never_redacted() -> None:
    """A secret that is a common word does not make the log unreadable by its events."""
    cleaned = Sanitizer(["simulated"])(None, "info", {"event": "agent.simulated"})

    assert cleaned == {"event": "agent.simulated"}


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_an_empty_secret_redacts_nothing(empty: str) -> None:
    """An unset secret does not turn every value into stars."""
    cleaned = Sanitizer([empty])(None, "info", {"value": "a b\nc"})

    assert cleaned == {"value": "a b\nc"}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Colour.RED, "red"),
        (Path("/a/b"), "/a/b"),
        (b"a\xffb", "a\\xffb"),
        (float("inf"), "inf"),
        (10**30, "a huge number"),
        ({"k": (1, None)}, {"k": [1, None]}),
    ],
)
def test_every_value_becomes_plain_data(value: object, plain: object) -> None:
    """What JSON cannot say becomes text."""
    cleaned = Sanitizer(())(None, "info", {"value": value})

    assert cleaned == {"value": plain}


def test_a_long_text_keeps_its_ends_and_says_so() -> None:
    """A megabyte becomes LOG_VALUE_LIMIT characters: the beginning, how long it was, the end."""
    text = "begin" + "x" * 1_000_000 + "end"

    cut = str(Sanitizer(())(None, "info", {"value": text})["value"])

    assert len(cut) == LOG_VALUE_LIMIT
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert " [1000008 characters, cut] " in cut


def test_many_long_texts_in_one_value_are_no_longer_than_one() -> None:
    """A list of a hundred texts of four thousand characters would be half a megabyte of line."""
    event = {"value": {str(n): ["x" * 5000] * 100 for n in range(3)}}

    cleaned = Sanitizer(())(None, "info", event)

    assert len(str(cleaned["value"])) <= LOG_VALUE_LIMIT


def test_a_long_list_and_a_deep_one_end() -> None:
    """Neither a long list nor one that holds itself makes an endless line."""
    endless: list[object] = []
    endless.append(endless)
    event = {"long": list(range(100_000)), "deep": endless}

    cleaned = Sanitizer(())(None, "info", event)

    assert len(cleaned["long"]) == ITEM_LIMIT
    for renderer in (TextRenderer(), JsonRenderer()):
        assert len(renderer(None, "info", cleaned)) < 10_000
