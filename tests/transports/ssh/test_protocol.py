"""The messages of a host's scripts, told from what else they and the program write."""

from __future__ import annotations

import pytest

from sortie.transports.remote.protocol import (
    SCRIPT_MESSAGE_LIMIT,
    LaunchOutput,
    MessageParser,
    numbers_in,
)

NONCE = "sortie-00"
STARTED = b"\1sortie-00 started 41\n"


def everything(
    launch: LaunchOutput, number: int, *chunks: bytes
) -> tuple[dict[int, bytes], list[str]]:
    """Feed what came on a stream; return the bytes of each kind, and the messages."""
    output: dict[int, bytes] = {}
    messages = []
    for chunk in chunks:
        for stream, piece, message in launch.feed(number, chunk):
            if piece:
                output[stream] = output.get(stream, b"") + piece
            messages += [] if message is None else [message]
    return output, messages


def test_what_comes_before_the_program_is_noise() -> None:
    """On both streams; and none of the messages is the program's."""
    launch = LaunchOutput(NONCE)

    out = everything(launch, 1, b"motd\n\1sortie-00 here 7 - \n", b"more" + STARTED + b"its own")
    err = everything(launch, 2, b"warning", b"\1sortie-00 started\nits error")

    assert out == ({0: b"motd\nmore", 1: b"its own"}, ["here 7 -", "started 41"])
    assert err == ({0: b"warning", 2: b"its error"}, [])


def test_what_could_have_begun_a_message_is_not_lost() -> None:
    """It is the program's when nothing more comes, unless the program never began."""
    launch = LaunchOutput(NONCE)
    everything(launch, 2, b"\1sortie-00 started\n", b"end\1sor")
    everything(launch, 1, b"\1sor")

    assert list(launch.close()) == [(0, b"\1sor", None), (2, b"\1sor", None)]


def test_it_is_complete_when_both_streams_have_the_last_message() -> None:
    """It names the pids that stay. Behind it nothing of the program can come on that stream; on the
    other one it still can."""
    launch = LaunchOutput(NONCE)
    everything(launch, 1, STARTED)
    everything(launch, 2, b"\1sortie-00 started\n")

    first = everything(launch, 2, b"bye\1sortie-00 gone 12 -30 x\n")
    before = launch.is_complete
    second = everything(launch, 1, b"the rest", b"\1sortie-00 go", b"ne 12 -30\n")

    assert (first, before) == (({2: b"bye"}, []), False)
    assert (second, launch.is_complete, launch.gone) == (({1: b"the rest"}, []), True, [12, -30])


def taken(parser: MessageParser, chunks: list[bytes]) -> tuple[bytes, list[str]]:
    """Feed some chunks; return what is no message, and the messages."""
    plain, said = b"", []
    for chunk in chunks:
        for before, message in parser.feed(chunk):
            plain += before
            if message is not None:
                said.append(message)
    return plain + parser.close(), said


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_messages_are_found_however_the_bytes_are_cut(size: int) -> None:
    """Whatever arrives together, the same messages and the same rest come out."""
    stream = b"noise\1\n\1n\1nonce here 1\nrest\1nonce gone\n\1nonce2 x\n\1nonc"

    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

    assert taken(MessageParser("nonce"), chunks) == (
        b"noise\1\n\1nrest\1nonce2 x\n\1nonc",
        ["here 1", "gone"],
    )


def test_what_is_no_message_is_not_held_back() -> None:
    """Output goes on at once unless it ends like the beginning of a message."""
    parser = MessageParser("nonce")

    first = parser.feed(b"all of it")
    second = parser.feed(b"but this\1no")
    third = parser.feed(b"body\n")

    assert (first, second, third) == (
        [(b"all of it", None)],
        [(b"but this", None)],
        [(b"\1nobody\n", None)],
    )


def test_text_before_a_message_comes_with_it() -> None:
    """What was said first is told first."""
    assert MessageParser("n").feed(b"a\1n x y\nb\1n z\n") == [(b"a", "x y"), (b"b", "z")]


def test_a_message_without_an_end_is_cut() -> None:
    """A host that never ends its line fills no memory, and what follows the line is heard."""
    parser = MessageParser("n")
    kept = 0

    chunks = [b"\1n begin ", *[b"x" * 100_000] * 200]
    for chunk in chunks:
        kept += sum(len(message or "") for _, message in parser.feed(chunk))
    after = taken(parser, [b"end of it\nplain\1n next\n"])

    assert kept == SCRIPT_MESSAGE_LIMIT
    assert after == (b"end of it\nplain", ["next"])


def test_only_numbers_are_taken_for_numbers() -> None:
    """A host may say anything else instead of a pid."""
    said = f"gone 12 -7 --7 \u00b2 \u0663 1_0 {'9' * 5000} 13:4"

    assert numbers_in(said) == [12, -7]
