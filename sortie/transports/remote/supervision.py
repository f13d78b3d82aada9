"""What is known here of a program behind a supervisor, over all its links; without I/O.

Rule 1: every byte of output counts once: it is counted when it is taken, and a further link goes on
behind it. What may be the beginning of a message when a link is lost is not taken.
Rule 2: every byte of stdin is accepted there once: a further link begins behind what was accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from sortie.transports.remote.protocol import Item, MessageParser, ScriptOutput, numbers_in
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.supervisor_scripts import (
    SupervisedLaunch,
    adopting_script,
    attaching_script,
    opening_script,
    supervisor_script,
)

ARMED = b"armed\n"
"""What an attachment waits for before it sends anything: from now on the program lives without a
link."""

END = b"end\n"
"""Ends the program with its tree."""

DONE = b"done\n"
"""All was heard: the supervisor removes its files, and ends."""

STDIN_AHEAD = 256 * 1024
"""Bytes of stdin that are sent at most before the program has been given them."""

PIECE = 64 * 1024
"""Bytes of stdin that are accepted at once."""

_MOST_PIECES = 512  # the FIFO by which the feeder is told takes a byte for each
_ACK_EVERY = 256 * 1024
_ATTACHED, _ERRORS = "attached", "errors"


class SupervisedOutput(ScriptOutput):
    """Reads what comes on one link: messages of the scripts, and output behind ``attached``.

    Messages on stderr are told as ``errors`` and the message.
    """

    def __init__(self, nonce: str) -> None:
        self._parsers = {1: MessageParser(nonce), 2: MessageParser(nonce)}
        self._attached: set[int] = set()

    def feed(self, number: int, chunk: bytes) -> Iterator[Item]:
        """Yield what came on stdout (1) or stderr (2), in order."""
        for before, message in self._parsers[number].feed(chunk):
            stream = number if number in self._attached else 0
            if message is not None and message.partition(" ")[0] == _ATTACHED:
                self._attached.add(number)
            told = message if message is None or number == 1 else f"{_ERRORS} {message}"
            yield stream, before, told

    def close(self) -> Iterator[Item]:
        """Yield nothing: what was held back comes again on the next link."""
        yield from ()


class Supervision:
    """One program over all its links.

    ``exit`` is its status as a shell tells it, above 128 for a signal. ``gone`` is None until its
    tree has ended and all output was taken, and then the pids that stay. ``unkept`` tells that its
    output could not be kept on the host, ``lapsed`` that nobody had come for too long, and
    ``unwatched`` that who watches over it is no more.
    """

    def __init__(self, supervised: SupervisedLaunch) -> None:
        self.exit: int | None = None
        self.gone: list[int] | None = None
        self.unkept = False
        self.lapsed = False
        self.unwatched = False
        self.stdin_broken = False
        self.attached = False
        self._supervised = supervised
        self._nonce = supervised.launch.nonce
        self._number = 1
        self._taken = {1: 0, 2: 0}
        self._acked = {1: 0, 2: 0}
        self._errors_ended = False
        self._left: list[int] | None = None
        self._pieces: deque[tuple[int, bytes]] = deque()  # that were not given to the program
        self._sent = 0
        self._given = 0
        self._stdin_closed = False

    @property
    def launch(self) -> RemoteLaunch:
        """The launch of the program."""
        return self._supervised.launch

    @property
    def id(self) -> str:
        """What its supervisor is known by on the host."""
        return self._supervised.id

    @property
    def reattach(self) -> float:
        """Seconds for which it lives without a link."""
        return self._supervised.reattach

    def opening(self, *, whole: bool = False) -> bytes:
        """Return what begins the supervisor, for the first shell on the host; with the supervisor's
        script where it is ``whole``."""
        return opening_script(self._supervised, whole=whole)

    def starting(self) -> bytes:
        """Return what that shell is told once it has said HERE: the supervisor's script."""
        return supervisor_script(self._supervised)

    def attaching(self, nonce: str) -> bytes:
        """Return the script for a shell on a new link, whose attachment ends all before it; all
        that came on these has to be taken before. The nonce was never used."""
        self.attached = False
        self._number += 1
        self._nonce = nonce
        self._errors_ended = False
        self._left = None
        positions = (self._taken[1], self._taken[2])
        return attaching_script(self._supervised, nonce, self._number, positions)

    def adopting(self, nonce: str) -> bytes:
        """Return the script for a shell by which a program is gone on with that another daemon has
        started: all of its output comes again. The nonce was never used."""
        self._nonce = nonce
        return adopting_script(self._supervised, nonce)

    def parser(self) -> ScriptOutput:
        """Return what reads the newest link."""
        return SupervisedOutput(self._nonce)

    def take(self, stream: int, chunk: bytes) -> bytes:
        """Count output that is held here now; return what to write."""
        self._taken[stream] += len(chunk)
        if self._taken[stream] - self._acked[stream] < min(_ACK_EVERY, self._supervised.kept // 4):
            return b""
        return self._acknowledgement()

    def hear(self, message: str) -> bytes:
        """Understand a message; return what to write."""
        name, _, rest = message.partition(" ")
        match name:
            case "attached":
                self.attached = True
                return ARMED + self._acknowledgement() + self._repeat(rest)
            case "number":
                self._number = next(iter(numbers_in(rest)), self._number)
            case "fed":
                self._note_fed(rest)
            case "exit":
                self.exit = next(iter(numbers_in(rest)), 255)
            case "lapsed":
                self.lapsed = True
            case "unkept":
                self.unkept = True
            case "unwatched" | "absent":
                self.unwatched = True
            case "gone":
                self._left = numbers_in(rest)
            case "errors":
                self._errors_ended |= rest.partition(" ")[0] == "gone"
        if self._errors_ended and self._left is not None:
            self.gone = self._left
        return b""

    @property
    def stdin_room(self) -> int:
        """How many bytes of stdin may be sent now; 0 until the program has been given more."""
        if len(self._pieces) >= _MOST_PIECES:
            return 0
        return max(0, STDIN_AHEAD - (self._sent - self._given))

    def send(self, data: bytes) -> bytes:
        """Note stdin, no more than there is room for; return what to write."""
        written = b""
        for at in range(0, len(data), PIECE):
            piece = (self._sent, data[at : at + PIECE])
            self._pieces.append(piece)
            self._sent += len(piece[1])
            written += _frame(*piece)
        return written if self.attached else b""

    def close_stdin(self) -> bytes:
        """Note the end of the stdin; return what to write."""
        self._stdin_closed = True
        return self._end_of_stdin() if self.attached else b""

    def _acknowledgement(self) -> bytes:
        """Return the line that says what is held here; the last one may have been lost."""
        self._acked = dict(self._taken)
        return b"ack %d %d\n" % (self._taken[1], self._taken[2])

    def _repeat(self, said: str) -> bytes:
        """Return what was sent and not accepted, as a new link has to bring it."""
        accepted = next(iter(numbers_in(said)), 0)
        written = b"".join(_frame(at, piece) for at, piece in self._pieces if at >= accepted)
        return written + (self._end_of_stdin() if self._stdin_closed else b"")

    def _end_of_stdin(self) -> bytes:
        return b"eof %d\n" % self._sent

    def _note_fed(self, said: str) -> None:
        if said == "broken":
            self.stdin_broken = True
        self._given = max([self._given, *numbers_in(said)])
        while self._pieces and self._pieces[0][0] + len(self._pieces[0][1]) <= self._given:
            self._pieces.popleft()


def _frame(at: int, piece: bytes) -> bytes:
    return b"in %d %d\n%b" % (at, len(piece), piece)
