"""The state: its JSON is the contract's, key for key."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from sortie.web.redaction import json_bytes
from sortie.web.state import StateView, to_json
from tests.web.conftest import STATE


@pytest.mark.parametrize("title", ["\x00\x1b\n\u2028", "</script>", "x" * 1_000_000, "\ud800"])
def test_any_title_is_valid_json(title: str) -> None:
    """Text from a tracker cannot break the answer."""
    evil = replace(STATE, running=(replace(STATE.running[0], title=title),))

    parsed = json.loads(to_json(evil))

    assert parsed["running"][0]["title"] == title


NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters())  # lone surrogates among them


@given(title=TEXTS, used=NUMBERS, errors=st.lists(TEXTS, max_size=3))
def test_every_state_is_written_as_plain_json_would_be(
    title: str, used: float | None, errors: list[str]
) -> None:
    """The fast way and the one for texts that are no UTF-8 write the same values."""
    (run,) = STATE.running
    workflow = replace(STATE.workflow, errors=tuple(errors))
    running = (replace(run, title=title, credits=used),)
    state = replace(STATE, workflow=workflow, running=running)

    read = json.loads(to_json(state))

    assert read == json.loads(json_bytes(TypeAdapter(StateView).dump_python(state, mode="json")))
    assert read["running"][0]["title"] == title
    assert read["workflow"]["errors"] == errors
