"""What is known of a supervised program over all its links, without any host."""

from __future__ import annotations

import re

import pytest

from sortie.transports import Command, Stdin
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.supervision import (
    ARMED,
    PIECE,
    STDIN_AHEAD,
    SupervisedOutput,
    Supervision,
)
from sortie.transports.remote.supervisor_scripts import SupervisedLaunch, ending_body

SECRET = "tk-0123456789"


def supervision(kept: int = 1 << 20) -> Supervision:
    command = Command(argv=("cat",), cwd="/", env={"TOKEN": SECRET}, stdin=Stdin.PIPE)
    launch = RemoteLaunch(command=command, nonce="n-1", lease=30.0)
    return Supervision(SupervisedLaunch(launch=launch, reattach=300.0, kept=kept))


def attached(one: Supervision, accepted: int = 0) -> bytes:
    return one.hear(f"attached {accepted} -")


def position(script: bytes) -> tuple[int, int, int]:
    found = [re.search(rb"(?m)^%s='(\d+)'$" % name, script) for name in (b"K", b"at1", b"at2")]
    number, out, errors = (int(match[1]) for match in found if match is not None)
    return number, out, errors


def test_a_further_link_goes_on_behind_what_was_taken() -> None:
    """With a larger number each time; and what the last link acknowledged is said again, as it may
    have been lost with it."""
    one = supervision()
    attached(one)
    one.take(1, bytes(1000))
    one.take(2, bytes(10))

    second, third = one.attaching("n-2"), one.attaching("n-3")

    assert position(one.opening()) == (1, 0, 0)
    assert position(second) == (2, 1000, 10)
    assert position(third) == (3, 1000, 10)
    assert attached(one) == ARMED + b"ack 1000 10\n"


def test_output_is_acknowledged_before_the_host_holds_the_program_up() -> None:
    """At the latest when a quarter of what the host keeps was taken."""
    one = supervision(kept=64 * 1024)

    said = [one.take(1, bytes(4096)) for _ in range(8)]

    assert [line for line in said if line] == [b"ack 16384 0\n", b"ack 32768 0\n"]


def test_stdin_is_repeated_from_what_was_accepted() -> None:
    """Whole pieces, in order, with the end; what was accepted is not sent again."""
    one = supervision()
    attached(one)
    first = one.send(b"abc")
    one.attaching("n-2")
    unsent = one.send(b"defg") + one.close_stdin()

    assert first == b"in 0 3\nabc"
    assert unsent == b""
    assert attached(one, accepted=3) == ARMED + b"ack 0 0\nin 3 4\ndefgeof 7\n"
    one.attaching("n-3")
    assert attached(one) == ARMED + b"ack 0 0\nin 0 3\nabcin 3 4\ndefgeof 7\n"


def test_what_the_program_was_given_is_forgotten_and_makes_room() -> None:
    """Nothing more than STDIN_AHEAD is on its way."""
    one = supervision()
    attached(one)
    one.send(bytes(STDIN_AHEAD))
    full = one.stdin_room

    one.hear(f"fed {PIECE}")

    assert (full, one.stdin_room) == (0, PIECE)
    one.attaching("n-2")
    again = attached(one, accepted=PIECE)
    assert again.startswith(ARMED + b"ack 0 0\nin %d %d\n" % (PIECE, PIECE))


def test_many_small_pieces_are_held_up_too() -> None:
    """The host is told of each by a byte in a pipe that holds only so many."""
    one = supervision()
    attached(one)
    sent = 0
    while one.stdin_room:
        one.send(b"x")
        sent += 1

    assert sent == 512


def test_it_is_over_when_both_streams_have_said_so() -> None:
    """In whatever order, on one link."""
    one = supervision()
    attached(one)
    one.hear("gone 7")
    one.attaching("n-2")
    attached(one)
    one.hear("errors gone 7")
    before = one.gone
    one.hear("gone 7")

    assert (before, one.gone) == (None, [7])


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_what_is_cut_in_a_message_is_no_output(size: int) -> None:
    """Its beginning comes again on the next link."""
    parser = SupervisedOutput("n-1")
    told: list[str] = []
    output = b""
    whole = b"motd\n\1n-1 attached 0 -\nabc\1n-1 fed 3\ndef\1n-1 go"
    for at in range(0, len(whole), size):
        for stream, before, message in parser.feed(1, whole[at : at + size]):
            output += before if stream else b""
            told += [message] if message else []

    assert list(parser.close()) == []
    assert (output, told) == (b"abcdef", ["attached 0 -", "fed 3"])


def test_only_the_supervisors_own_script_holds_the_variables() -> None:
    """Those of a link do not, and the name of its directory tells nothing of the nonce."""
    one = supervision()

    assert SECRET.encode() in one.starting()
    assert SECRET.encode() not in one.opening() + one.attaching("n-2")
    assert one.id not in "n-1"
    assert ending_body([one.id], ["other"])[-2].endswith(f"'{one.id}' 'other'".encode())
