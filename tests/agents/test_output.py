"""What is kept of a turn's output, and what its reader gets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.exits import Failure
from sortie.agents.output import STDERR_TAIL, WARNING_LENGTH, WARNINGS_SHOWN, AgentOutput
from sortie.lines import LineSplitter
from sortie.model.turns import AgentEvent, ErrorsWritten, Notification

STDOUT = (
    b"\x1b[38;5;141m> \x1b[0mRed \xf0\x9f\x9b\xa0\xef\xb8\x8f\n\n  \nBlue\r\n"
    b"\xe2\xa0\x8b wait\r\x1b[2KYellow"
)
STDERR = (
    b"\x1b[33mNo MCP\x1b[0m\n50%\r100%\rsk-secret leaked\n"
    b"\x1b[1mAuthentication failed.\x1b[0m Really\nquiet: no matter\n"
)

SECRETS = ["sk-secret", "two\nlines"]
PIECES = [
    *(
        b"a",
        b"plain words",
        b" ",
        b"\t",
        b"\n",
        b"\r",
        b"\x1b[1m",
        b"\x1b[2K",
        b"\x1b",
        b"\xc2\x85",
    ),
    *(b"sk-", b"secret", b"sk-secret", b"two", b"lines", b"\xe2\x96\xb8", b"\xe2", b"longer" * 5),
]


class Reader:
    """Keeps what it gets; a line that begins with ``quiet`` is no warning."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.end: str | None = None

    def stdout(self, line: str) -> Sequence[AgentEvent]:
        self.lines.append(line)
        return [Notification(message=line)] if line else []

    def stderr(self, line: str) -> bool:
        return not line.startswith("quiet")

    def close(self, stderr: str) -> Sequence[AgentEvent]:
        self.end = stderr
        return [Notification(message="closed")]

    def failure(self, status: int) -> Failure | None:
        raise NotImplementedError


class Batches(Reader):
    """The same, by the chunk."""

    def stdout_lines(self, lines: Sequence[str]) -> Sequence[AgentEvent]:
        return [event for line in lines for event in self.stdout(line)]


def cut(stream: bytes, places: set[int]) -> list[bytes]:
    ends = [0, *sorted(p for p in places if p < len(stream)), len(stream)]
    return [stream[a:b] for a, b in pairwise(ends)]


@given(st.sets(st.integers(0, len(STDOUT))), st.sets(st.integers(0, len(STDERR))))
def test_chunks_make_no_difference(out: set[int], err: set[int]) -> None:
    """Any chunking gives the same lines, events and warnings, also inside an escape."""
    reader = Reader()
    output = AgentOutput(reader, ["sk-secret"])

    events = [event for chunk in cut(STDOUT, out) for event in output.take(1, chunk)]
    for chunk in cut(STDERR, err):
        events += output.take(2, chunk)
    events += output.close()

    assert reader.lines == ["> Red 🛠️", "", "", "Blue", "Yellow"]
    assert [e.message for e in events if isinstance(e, Notification)] == [
        "> Red 🛠️",
        "Blue",
        "Yellow",
        "closed",
    ]
    errors = [event.text for event in events if isinstance(event, ErrorsWritten)]
    assert "\n".join(errors).split("\n") == [
        "No MCP",
        "50%",
        "100%",
        "*** leaked",
        "Authentication failed. Really",
        "quiet: no matter",
    ]
    assert output.warnings == (
        "No MCP",
        "50%",
        "100%",
        "*** leaked",
        "Authentication failed. Really",
    )
    assert reader.end is not None
    assert reader.end.endswith("*** leaked\nAuthentication failed. Really\nquiet: no matter\n")


@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map(b"".join), max_size=8),
    st.sampled_from([Reader, Batches]),
)
def test_chunks_and_batches_tell_what_single_bytes_tell(
    chunks: list[bytes], kind: type[Reader]
) -> None:
    """Plain text, escapes, redraws, blanks, secrets and long lines: however they come, the events
    and the warnings are those of one byte after the other for a reader of lines."""
    whole, piecemeal = kind(), Reader()
    quick = AgentOutput(whole, SECRETS, LineSplitter(24))
    slow = AgentOutput(piecemeal, SECRETS, LineSplitter(24))

    told = [event for chunk in chunks for event in quick.take(1, chunk)]
    expected = [event for byte in b"".join(chunks) for event in slow.take(1, bytes([byte]))]
    for chunk in chunks:
        quick.take(2, chunk)
    for byte in b"".join(chunks):
        slow.take(2, bytes([byte]))

    assert told + quick.close() == expected + slow.close()
    assert (whole.lines, whole.end) == (piecemeal.lines, piecemeal.end)
    assert quick.warnings == slow.warnings
    assert quick.line_too_long == slow.line_too_long


def test_a_secret_is_taken_out_whole() -> None:
    """No part of it is left in a line, a warning or the end of stderr, wherever they are cut."""
    reader = Reader()
    output = AgentOutput(reader, ["hunter2-hunter2"])

    output.take(1, b"key hunter2-hunter2\n")
    output.take(2, b"x" * (WARNING_LENGTH - 6) + b"hunter2-hunter2 and more\n")
    output.close()

    assert reader.lines == ["key ***"]
    assert "hunter" not in output.warnings[0] + (reader.end or "")
    assert len(output.warnings[0]) <= WARNING_LENGTH


def test_warnings_are_bounded() -> None:
    """The last lines of stderr are kept, each cut, however many and long they are."""
    output = AgentOutput(Reader())

    output.take(2, b"".join(b"%d %s\n" % (n, b"e" * 1000) for n in range(100)))
    output.take(2, b"f" * 100_000 + b"\nlast")
    output.close()

    assert len(output.warnings) == WARNINGS_SHOWN
    assert max(len(w) for w in output.warnings) <= WARNING_LENGTH
    assert output.warnings[-2].startswith("99 ")
    assert output.warnings[-1] == "last"


def test_the_end_of_a_flood_is_kept() -> None:
    """A stderr without a line end is bounded, and its end is there."""
    reader = Reader()
    output = AgentOutput(reader)

    for _ in range(100):
        output.take(2, b"z" * 65536)
    output.take(2, b" the end")
    output.close()

    assert reader.end is not None
    assert len(reader.end) == STDERR_TAIL
    assert reader.end.endswith("z the end")


def test_nothing_counts_after_a_line_that_is_too_long() -> None:
    """It is seen at once, and the rest of stdout is not read any more."""
    reader = Reader()
    output = AgentOutput(reader, splitter=LineSplitter(10))

    events = output.take(1, b"short\n" + b"x" * 11 + b"\nmore\n")
    events += output.take(1, b"even more\n")

    assert events == [Notification(message="short")]
    assert output.line_too_long
    assert reader.lines == ["short"]
