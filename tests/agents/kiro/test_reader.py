"""What the output and the exit of a Kiro turn mean, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.agents.exits import Failure
from sortie.agents.kiro.agent import KiroReader
from sortie.model import ErrorKind
from sortie.model.turns import Notification, Usage

TRAILER = " ▸ Credits: 0.07 • Time: 4s"
BAD_KEY = "Authentication failed. Your API key may be invalid or expired."
NON_ZERO = "kiro exited with a non-zero status: "


def read(*stderr: str, stdout: str = "") -> KiroReader:
    """Return a reader that has taken a whole turn's output."""
    reader = KiroReader()
    reader.stdout(stdout)
    for line in stderr:
        reader.stderr(line.strip())
    reader.close("\n".join(stderr))
    return reader


@pytest.mark.parametrize("stdout", ["", "> PONG"])
def test_exit_0_with_a_trailer_completes(stdout: str) -> None:
    """The trailer is the proof, with or without an answer."""
    reader = read(TRAILER, stdout=stdout)

    assert reader.failure(0) is None
    assert reader.completed


@pytest.mark.parametrize(
    ("status", "reader", "kind", "message"),
    [
        (0, read(BAD_KEY), "response_error", "kiro authentication failed"),
        (0, read(), "turn_failed", "kiro exited without a credits trailer"),
        (0, read(BAD_KEY, stdout="x"), "turn_failed", "kiro exited without a credits trailer"),
        (1, read(TRAILER), "port_exit", NON_ZERO + "1"),
        (3, read(), "port_exit", NON_ZERO + "3 (a required MCP server did not start)"),
        (
            4,
            read(),
            "port_exit",
            NON_ZERO + "4 (the agent named by kiro.agent does not exist)",
        ),
        (77, read(BAD_KEY), "port_exit", NON_ZERO + "77"),
        (139, read(), "port_exit", NON_ZERO + "139"),
        (
            255,
            read(),
            "port_exit",
            NON_ZERO + "255 (where it runs over SSH, the connection failed)",
        ),
    ],
)
def test_failures(status: int, reader: KiroReader, kind: str, message: str) -> None:
    """Every other end is a failure of the documented kind, and no proof of a turn."""
    assert reader.failure(status) == Failure(ErrorKind(kind), message)
    assert not reader.completed


def test_bad_arguments_are_explained() -> None:
    """Exit 2 points to the settings."""
    refused = (
        "it did not accept its arguments; does this version of Kiro know every kiro.* setting?"
    )

    assert read().failure(2) == Failure(ErrorKind.PORT_EXIT, f"{NON_ZERO}2 ({refused})")


@pytest.mark.parametrize(
    ("trailer", "told"),
    [(TRAILER, [Usage(credits=0.07)]), ("▸ Credits: some", []), ("none", [])],
)
def test_what_was_spent_is_told(trailer: str, told: list[Usage]) -> None:
    """Credits come from the trailer, and unknown ones are not 0."""
    assert KiroReader().close(f"one\n{trailer}") == told


def test_lines_become_notifications() -> None:
    """Each with text in it is one, of 500 characters at most, which has the whole line besides."""
    reader = KiroReader()

    assert reader.stdout("> PONG") == [Notification(message="> PONG")]
    assert reader.stdout("") == []
    assert reader.stdout("x " * 251) == [Notification(message=("x " * 250)[:-1], text="x " * 251)]
    assert reader.stdout("x" * 501) == [Notification(message="[501 characters]", text="x" * 501)]


@given(st.lists(st.sampled_from(["", "one", "two", "x" * 501])))
def test_one_notification_stands_for_the_lines_of_a_chunk(lines: list[str]) -> None:
    """It is the last of those that they would be one by one, counts all and has their texts."""
    batch, single = KiroReader(), KiroReader()
    each = [event for line in lines for event in single.stdout(line)]

    told = batch.stdout_lines(lines)

    last = [event for event in each[-1:] if isinstance(event, Notification)]
    texts = [line for line in lines if line]
    whole = "\n".join(texts) if len(texts) > 1 or len("".join(texts)) > 500 else None
    assert told == [replace(event, lines=len(each), text=whole) for event in last]
    assert batch.failure(0) == single.failure(0)


def test_the_trailer_is_no_warning() -> None:
    """All else on stderr may explain a failure."""
    assert [KiroReader().stderr(line.strip()) for line in (BAD_KEY, TRAILER)] == [True, False]
