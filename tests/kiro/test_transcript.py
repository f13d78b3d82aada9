"""What is kept of a turn's output."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.trailer import Trailer
from sortie.kiro.transcript import (
    STDOUT_TAIL,
    WARNING_COUNT,
    WARNING_LENGTH,
    Evidence,
    Transcript,
    redact,
)
from sortie.model import NOTIFICATION_LIMIT, Notification

STDOUT = (
    b"\x1b[38;5;141m> \x1b[0mRed \xf0\x9f\x9b\xa0\xef\xb8\x8f\n\n  \nBlue\r\n"
    b"\xe2\xa0\x8b wait\r\x1b[2KYellow"
)
STDERR = (
    b"\x1b[33mFailed to retrieve MCP settings; MCP functionality disabled\x1b[0m\n"
    b"50%\r100%\rsk-secret leaked\n\x1b[1mAuthentication failed.\x1b[0m Really\n"
    b"\x1b[38;5;244m \xe2\x96\xb8 Credits: 0.07 \xe2\x80\xa2 Time: 4s\x1b[0m\n"
)
EVIDENCE = Evidence(
    printed=len("> Red 🛠️\nBlue\nYellow\n".encode()),
    trailer=Trailer(credits=0.07),
    authentication_failed=True,
    warnings=(
        "Failed to retrieve MCP settings; MCP functionality disabled",
        "50%",
        "100%",
        "*** leaked",
        "Authentication failed. Really",
    ),
)


def cut(stream: bytes, places: set[int]) -> list[bytes]:
    ends = [0, *sorted(p for p in places if p < len(stream)), len(stream)]
    return [stream[a:b] for a, b in pairwise(ends)]


@given(st.sets(st.integers(0, len(STDOUT))), st.sets(st.integers(0, len(STDERR))))
def test_chunks_make_no_difference(out: set[int], err: set[int]) -> None:
    """Any chunking gives the same notifications, warnings and credits, also inside an escape."""
    transcript = Transcript(["sk-secret"])

    notifications = [n for chunk in cut(STDOUT, out) for n in transcript.stdout(chunk)]
    for chunk in cut(STDERR, err):
        transcript.stderr(chunk)
    notifications += transcript.close()

    assert [n.message for n in notifications] == ["> Red 🛠️", "Blue", "Yellow"]
    assert transcript.evidence() == EVIDENCE
    assert transcript.tail == "> Red 🛠️\n\n\nBlue\nYellow\n"


def test_nothing_written_is_no_evidence() -> None:
    """A silent process leaves empty evidence."""
    transcript = Transcript()

    assert transcript.close() == []
    assert transcript.evidence() == Evidence()


def test_escapes_and_blank_lines_are_no_output() -> None:
    """A stdout of nothing but styling counts as empty, as the authentication row needs it."""
    transcript = Transcript()

    transcript.stdout(b"\x1b[?25l\xe2\xa0\x8b Thinking\r\x1b[2K\x1b[?25h\n  \n\x1b[0m")

    assert transcript.close() == []
    assert transcript.evidence() == Evidence()


def test_a_notification_is_cut_after_the_secret_is_taken_out() -> None:
    """500 characters at most, and no part of the key at the cut."""
    transcript = Transcript(["sk-secret"])
    line = "x" * (NOTIFICATION_LIMIT - 4) + "sk-secret" + "y" * 100

    (notification,) = transcript.stdout(f"{line}\n".encode())

    assert notification == Notification(message="x" * (NOTIFICATION_LIMIT - 4) + "***y")


def test_warnings_are_bounded() -> None:
    """The last lines of stderr are kept, each cut, however many and long they are."""
    transcript = Transcript()

    transcript.stderr(b"".join(b"%d %s\n" % (n, b"e" * 1000) for n in range(100)))
    transcript.stderr(b"f" * 100_000 + b"\nlast")
    transcript.close()

    warnings = transcript.evidence().warnings
    assert len(warnings) == WARNING_COUNT
    assert {len(w) for w in warnings[:-1]} == {WARNING_LENGTH}
    assert warnings[-2].startswith("99 ")
    assert warnings[-1] == "last"


def test_a_trailer_behind_a_line_without_end_is_found() -> None:
    """A flood of stderr without a line end neither hides the trailer nor fails the turn."""
    transcript = Transcript()

    for _ in range(100):
        transcript.stderr(b"z" * 65536)
    transcript.stderr(" ▸ Credits: 0.07 • Time: 4s".encode())
    transcript.close()

    assert transcript.evidence() == Evidence(trailer=Trailer(credits=0.07))


def test_stdout_is_counted_but_not_kept() -> None:
    """The count goes on where the tail ends; the tail is whole characters."""
    transcript = Transcript()
    line = "ü" * 100

    for _ in range(1000):
        transcript.stdout(f"{line}\n".encode())

    assert transcript.evidence().printed == 201 * 1000
    assert len(transcript.tail.encode()) in (STDOUT_TAIL - 1, STDOUT_TAIL)
    assert transcript.tail.endswith(f"{line}\n")


def test_nothing_counts_after_a_line_that_is_too_long() -> None:
    """The error value is seen at once, and the rest of stdout is not read any more."""
    transcript = Transcript(line_limit=10)

    notifications = transcript.stdout(b"short\n" + b"x" * 11 + b"\nmore\n")
    notifications += transcript.stdout(b"even more\n")

    assert notifications == [Notification(message="short")]
    assert transcript.line_too_long
    assert transcript.evidence() == Evidence(printed=6, line_too_long=True)


def test_what_is_too_short_for_a_secret_takes_nothing_out() -> None:
    """A key of less than four letters is not looked for in every other word."""
    assert redact("a text", ["", "x", "tex", "text"]) == "a ***"


def test_no_part_of_a_secret_stays() -> None:
    """Every occurrence goes, as it is and as JSON spells it, and of two the longer first."""
    text = r'sk-one, sk-one-two, "sk-\"three\"" and sk-one'

    assert redact(text, ["sk-one", "sk-one-two", 'sk-"three"']) == '***, ***, "***" and ***'


def test_a_warning_is_cut_after_the_secret_is_taken_out() -> None:
    """No part of a secret stays that stands where a long line is cut."""
    transcript = Transcript(["hunter2-hunter2"])
    line = "x" * (WARNING_LENGTH - 6) + "hunter2-hunter2 and more"

    transcript.stderr(line.encode() + b"\n")

    (warning,) = transcript.evidence().warnings
    assert "hunter" not in warning
    assert len(warning) <= WARNING_LENGTH
