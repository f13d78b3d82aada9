"""No part of a token stays where a text is cut, whatever the place of the cut in it."""

from __future__ import annotations

import json

import pytest

from sortie.agents.output import AgentOutput
from sortie.agents.texts import Texts
from sortie.http.answers import HttpAnswer
from sortie.json_rpc.wire import JUNK_SHOWN, Junk, MessageReader
from sortie.model.secrets import redactor
from sortie.model.texts import cut, end_of, start_of
from sortie.model.turns import NOTIFICATION_LIMIT, AgentEvent, notification
from sortie.workspaces.hooks import HOOK_OUTPUT_LIMIT, _Tail

TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJK"
PART = 6
"""Characters of the token that may not be seen."""

OFFSETS = range(len(TOKEN) + 1)
REDACT = redactor([TOKEN])


def has_part(text: str) -> bool:
    """Tell whether a part of the token is in a text."""
    return any(TOKEN[at : at + PART] in text for at in range(len(TOKEN) - PART + 1))


def around(limit: int, offset: int, filler: str = "word ") -> str:
    """Return a text with the token across the character ``limit``, so much of it before that."""
    before = (filler * limit)[: limit - offset]
    return f"{before[:-1]} {TOKEN} {filler * 40}" if offset < limit else TOKEN


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_text_is_redacted_before_it_is_cut(offset: int) -> None:
    """Also one that holds no blank, such as JSON."""
    text = around(200, offset)
    dense = json.dumps({"a": ["x" * (190 - offset), TOKEN, "y" * 400]}, separators=(",", ":"))

    for whole in (text, dense):
        assert not has_part(start_of(whole, 200, REDACT))
        assert not has_part(end_of(whole[::-1].replace(TOKEN[::-1], TOKEN), 200, REDACT))


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_token_that_is_not_known_yet_is_left_out_whole(offset: int) -> None:
    """Who redacts later finds it whole or not at all."""
    text = around(200, offset)
    dense = json.dumps({"a": ["x" * (190 - offset), TOKEN, "y" * 400]}, separators=(",", ":"))
    tail = f"{'word ' * 60}{TOKEN} {('word ' * 40)[: 200 - offset - 1]}"

    shown = [start_of(text, 200), start_of(dense, 200), end_of(tail, 200), cut(text, 200)]

    assert not [some for some in shown if has_part(REDACT(some))]
    assert all(len(some) <= 200 for some in shown)


@pytest.mark.parametrize("offset", OFFSETS)
def test_lines_of_agents_hold_no_part_of_it(offset: int) -> None:
    """A notification, a line that is no message of the protocol, and one of an answer."""
    line = around(NOTIFICATION_LIMIT, offset)
    junk = around(JUNK_SHOWN, offset).encode()

    told = notification([line]).message
    (unread,) = MessageReader().feed(junk + b"\n")
    answered = Texts(REDACT).clean(line.replace(" ", " " * 9))

    assert isinstance(unread, Junk)
    assert not [text for text in (told, unread.text, answered) if has_part(REDACT(text))]


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_body_of_a_tracker_holds_no_part_of_it(offset: int) -> None:
    """Neither the text that is shown, nor that of an answer with many blanks before it."""
    limit = 64 * 1024
    body = " " * (limit - offset) + TOKEN + " " * 50
    answer = HttpAnswer(status=500, url="https://x", headers={}, content=body.encode())

    assert not has_part(REDACT(answer.text()))


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("chunk", [1000, 4096, 100_000])
def test_the_end_of_a_hooks_output_holds_no_part_of_it(offset: int, chunk: int) -> None:
    """However it was split into chunks."""
    output = ("y " * 9000 + f"{TOKEN} " + "word " * HOOK_OUTPUT_LIMIT)[
        : 18_036 + HOOK_OUTPUT_LIMIT - offset
    ]
    tail = _Tail()

    for at in range(0, len(output), chunk):
        tail.add(output[at : at + chunk].encode())

    assert not has_part(REDACT(tail.text()))
    assert len(tail.text().encode()) <= HOOK_OUTPUT_LIMIT


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_token_in_two_chunks_of_an_agent_is_known(offset: int) -> None:
    """On stderr and stdout, and where the kept end of stderr begins."""
    output = AgentOutput(Lines(), [TOKEN])
    first, second = f"a {TOKEN}"[: 2 + offset], f"a {TOKEN}"[2 + offset :] + " b\n"
    flood = "word " * 13_100

    told = [
        *output.take(2, first.encode()),
        *output.take(2, second.encode()),
        *output.take(2, (flood + " " * offset).encode()),
    ]

    assert not has_part(repr(told))
    assert not has_part(output.errors)
    assert not has_part(repr(output.warnings))


class Lines:
    """A reader of lines that shows all of stderr."""

    def stdout(self, line: str) -> list[AgentEvent]:
        """Tell nothing."""
        return []

    def stderr(self, line: str) -> bool:
        """Show it."""
        return True

    def close(self, errors: str) -> list[AgentEvent]:
        """Tell nothing."""
        return []
