"""Writes what the shells of remote hosts are given to run; pure but for the texts in ``sh/``.

Rule 1: every byte but NUL arrives as it is, whatever it means to a shell.
Rule 2: a script goes to ``/bin/sh`` on its stdin, so the login shell sees SHELL and nothing else,
and nobody sees anything in a list of processes; unless secrets are delivered inline.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from msgspec import Struct

from sortie.model import TransportError
from sortie.transports import COOKIE, HOST_VARIABLES, Command, Stdin
from sortie.transports.ssh.namespaces import Namespaces

SHELL = "exec /bin/sh"
"""The command of every channel but the inline ones: it means the same to every login shell."""

STRING_LIMIT = 131072
"""Bytes that Linux gives to one argument or variable, its end included (MAX_ARG_STRLEN)."""

_OPEN_PIPE = 'exec <"$0"; command -p rm -rf -- "${0%/*}"; exec "$@"'
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# bash makes these read-only: setting one would end the script.
_READ_ONLY = frozenset({"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"})
# Of a mark: nineteen digits, all of which fit in the 63 bits that a shell calculates with.
_PRINTED = 256  # bytes in a line
_FIRST_MARK, _MARKS = 41 * 10**17, 10**17


class RemoteLaunch(Struct, frozen=True, kw_only=True):
    """A command on its way to a host. ``nonce`` is what the wrapper's words begin with.

    ``lease`` is how many seconds it may live without hearing from us. Where ``inline``, its
    first argument is a piece of shell, and its environment stands in the command line.
    ``namespaces`` is how it gets a PID namespace; None where it gets none.
    """

    command: Command
    nonce: str
    lease: float
    inline: bool = False
    namespaces: Namespaces | None = None

    @property
    def marker(self) -> int:
        """The limit on file locks, which no system enforces, that marks what descends from it."""
        digest = hashlib.sha256(self.nonce.encode()).digest()
        return _FIRST_MARK + int.from_bytes(digest[:8], "big") % _MARKS

    @staticmethod
    def is_marker(limit: int | None) -> bool:
        """Tell whether a limit on file locks is some launch's."""
        return limit is not None and _FIRST_MARK <= limit < _FIRST_MARK + _MARKS

    @property
    def centiseconds(self) -> int:
        """The grace time in 1/100 s, which is what a shell can count in."""
        return round(self.command.grace * 100)

    @property
    def cookie(self) -> str:
        """The run's id, or "" where the command has none."""
        return self.command.env.get(COOKIE, "")

    @property
    def stdin(self) -> bytes:
        """What the program is given on its stdin."""
        return self.command.stdin if isinstance(self.command.stdin, bytes) else b""


def quoted(text: str) -> bytes:
    """Return text as one word of a POSIX shell."""
    return b"'" + os.fsencode(text).replace(b"'", b"'\\''") + b"'"


def _quoted_anywhere(script: bytes) -> bytes:
    """Return a script as one word of a login shell, also of fish.

    There a backslash means something within quotes as well, so none stands there.
    """
    return b"'" + re.sub(rb"['\\]", rb"'\\\g<0>'", script) + b"'"


def assignment(name: str, value: str) -> bytes:
    """Return the line that gives a shell's variable a value. Raises TransportError."""
    return b"%s=%s" % (name.encode(), word(value))


def assignments(given: Mapping[str, str]) -> list[bytes]:
    """Return the lines that give a shell's variables their values. Raises TransportError."""
    return [assignment(name, value) for name, value in given.items()]


def word(value: str) -> bytes:
    """Return text as one word of a POSIX shell. Raises TransportError for what cannot be one."""
    if not _encodable(value):
        raise TransportError(f"{_shown(value)} holds a NUL character or is not valid Unicode")
    return quoted(value)


def printing(content: bytes) -> bytes:
    """Return the lines that print some bytes, whatever they are."""
    lines = [content[at : at + _PRINTED] for at in range(0, len(content), _PRINTED)]
    return b"\n".join(
        [b"printf '%s'" % b"".join(b"\\%03o" % byte for byte in line) for line in lines] or [b":"]
    )


def check_speakable(command: Command, *, inline: bool) -> None:
    """Raise TransportError for what no remote program can be given, without repeating it."""
    argv = command.argv
    if not argv:
        raise TransportError("could not start a program: the command is empty")
    if not all(_fits(text) for text in (*argv, command.cwd)):
        raise TransportError(
            f"could not start {_shown(argv[0])}: an argument or the directory is too long"
            " (128 KiB), holds a NUL character or is not valid Unicode"
        )
    for name, value in command.env.items():
        if not _NAME.fullmatch(name) or not _fits(f"{name}={value}"):
            raise TransportError(
                f"could not start {_shown(argv[0])}: the environment variable {_shown(name)}"
                " cannot be passed on through a shell (an invalid name, more than 128 KiB, a NUL"
                " character or invalid Unicode)"
            )
    if not inline and not argv[0]:
        raise TransportError("could not start a program: its name is empty")


def launch_script(launch: RemoteLaunch) -> bytes:
    """Return the script that becomes the program."""
    command = launch.command
    search = {"search": command.env["PATH"]} if "PATH" in command.env else {}
    given: dict[str, str] = {
        "nonce": launch.nonce,
        "program": "" if launch.inline else command.argv[0],
        "cwd": command.cwd,
        "stdin": str(len(launch.stdin)) if launch.stdin else "",
        "piped": "yes" if command.stdin is Stdin.PIPE else "",
        "marker": str(launch.marker),
        "cookie": launch.cookie,
        "grace": str(launch.centiseconds),
        "lease": f"{launch.lease:g}",
        "kept": " ".join(HOST_VARIABLES),
        **search,
    }
    become = _become_inline(launch) if launch.inline else _become(launch)
    return _block(
        *assignments(given),
        b"unset search" if not search else b"",
        assignment("ELF", "\x7fELF"),
        text("find_program"),
        *_watching(launch),
        text("go_on"),
        become,
    )


def _watching(launch: RemoteLaunch) -> list[bytes]:
    """Return what begins a launch, up to where its watchdog is there."""
    watch = b"watch() {\napart /bin/sh -s -- \"$@\" <<'SORTIE_WATCHDOG' &\n%s\nSORTIE_WATCHDOG\n}"
    # What its last word begins with is not for its arguments: the program could read them there.
    name = assignment("N", launch.nonce)
    if launch.namespaces is None:
        watchdog = [name, *_texts("stat_of", "clock", "newest", "end_tree", "lease", "watchdog")]
        return [watch % b"\n".join(watchdog), *_texts("start", "watched")]
    watchdog = [
        name,
        *making_namespace(launch.namespaces.idle),
        b"hold() { become_holder %s; }" % words(launch.namespaces.way.make),
        *_texts("stat_of", "clock", "lives", "child_of", "lease", "namespace_watchdog"),
    ]
    reading = _texts("stat_of", "child_of", "await_namespace")
    return [watch % b"\n".join(watchdog), *reading, *_texts("start", "namespaced")]


def making_namespace(idle: str) -> list[bytes]:
    """Return the lines by which a script can become the holder of a namespace."""
    return [assignment("idle", idle), text("namespace_holder")]


def words(given: Iterable[str]) -> bytes:
    """Return texts as words of a POSIX shell. Raises TransportError for what cannot be one."""
    return b" ".join(map(word, given))


def _entering(namespaces: Namespaces, init: bytes) -> bytes:
    """Return the words that run what follows in the namespace of an init."""
    enter = words(namespaces.way.enter)
    return b"%s --target %s %s --" % (word(namespaces.nsenter), init, enter)


def stdin_script(nonce: str, launch: RemoteLaunch, fifo: str, init: int = 0) -> bytes:
    """Return the script that passes what comes behind its GO on to a launch's FIFO; ``init`` is the
    pid of its namespace's, where it has one."""
    given = {
        "nonce": nonce,
        "marker": str(launch.marker),
        "cookie": launch.cookie,
        "fifo": fifo,
    }
    inside = b""
    if launch.namespaces is not None:
        inside = _entering(launch.namespaces, b"%d" % init)
    passing = b'inside() { exec %s "$@"; }' % inside
    return _block(*assignments(given), passing, text("stdin"))


def inline_command(launch: RemoteLaunch, script: bytes) -> str:
    """Return the remote command that runs a launch's script. Raises TransportError."""
    line = b"exec /bin/sh -c " + _quoted_anywhere(script)
    try:
        if len(line) < STRING_LIMIT:
            return line.decode()
    except UnicodeDecodeError:
        pass
    raise TransportError(
        f"could not start {_shown(launch.command.argv[0])}: its arguments are too long for a remote"
        " command line (128 KiB) or not valid UTF-8; set worker.ssh_secret_delivery to stdin"
    )


LEAVE = b"trap - EXIT\n"
"""What a shell that answers questions is told before its stdin ends, where it works on none."""


def shell_script(nonce: str) -> bytes:
    """Return the script that begins a shell which answers questions, until its stdin ends."""
    return _block(assignment("nonce", nonce), text("paths"), text("question"))


def question_script(body: Iterable[bytes]) -> bytes:
    """Return what such a shell is asked: some lines that say yes or no."""
    told = b'trap \'printf "\\001%s end %s\\n" "$nonce" $?\' EXIT'
    # The one before has ended, and is a zombie until it is waited for.
    return b"wait $!\n(\n%s\n) </dev/null &\n" % b"\n".join([told, *body])


def standing_question(nonce: str, body: Iterable[bytes]) -> bytes:
    """Return a script that answers yes, and goes on as long as its session lives, or no."""
    return _block(assignment("nonce", nonce), text("standing_question"), *body)


def processes_script(nonce: str) -> bytes:
    """Return the script that shows processes and signals them."""
    return _block(assignment("nonce", nonce), *_texts("stat_of", "newest", "processes"))


@cache
def text(name: str) -> bytes:
    """Return one of the texts in ``sh/``, without its comments and indentation.

    So no text may hold a word of several lines.
    """
    lines = files(__package__).joinpath("sh", f"{name}.sh").read_bytes().splitlines()
    stripped = (line.strip() for line in lines)
    return b"\n".join(line for line in stripped if line and not line.startswith(b"#"))


def _texts(*names: str) -> list[bytes]:
    return [text(name) for name in names]


def _become(launch: RemoteLaunch) -> bytes:
    command = launch.command
    exports = [_export(name, value) for name, value in command.env.items()]
    arguments = [quoted(argument) for argument in command.argv[1:]]
    return b"\n".join(
        [
            *exports,
            b"exec 2>&6 6>&- 7>&-\nsay_started",
            b" ".join([b"exec", _inside(launch), b'"$found"', *arguments, b"<&5 3<&- 5<&-"]),
        ]
    )


def _become_inline(launch: RemoteLaunch) -> bytes:
    command = launch.command
    variables = [
        b"%s=%s" % (name.encode(), quoted(value))
        for name, value in command.env.items()
        if name not in _READ_ONLY
    ]
    arguments = [quoted(argument) for argument in command.argv[1:]]
    line = b" ".join([*variables, os.fsencode(command.argv[0]), *arguments])
    line = b"cd -- %s && %s" % (quoted(command.cwd), line)
    if launch.namespaces is not None:
        line = b"exec %s /bin/sh -c %s" % (_inside(launch), quoted(os.fsdecode(line)))
    return b"exec 2>&6 6>&- 7>&- <&5 3<&- 5<&-\nsay_started\n%s\nexit" % line


def _inside(launch: RemoteLaunch) -> bytes:
    """Return the words that run what follows in the launch's namespace, leading a session; none
    where it has no namespace."""
    if launch.namespaces is None:
        return b""
    entering = _entering(launch.namespaces, b'"$namespace_init"')
    inside = b"%s %s" % (entering, word(launch.namespaces.setsid))
    if launch.command.stdin is Stdin.PIPE:
        # What waits for the program has all that we have open, and would keep its stdin open.
        return b'%s /bin/sh -c %s "$pipe/stdin"' % (inside, quoted(_OPEN_PIPE))
    return inside


def _export(name: str, value: str) -> bytes:
    line = b"export %s=%s" % (name.encode(), quoted(value))
    return b"command " + line + b" 2>/dev/null" if name in _READ_ONLY else line


def _block(*lines: bytes) -> bytes:
    """Make one command of a script, so that the shell has read it all when it begins."""
    return b"{\n" + b"\n".join(line for line in lines if line) + b"\n}\n"


def _fits(value: str) -> bool:
    return _encodable(value) and len(os.fsencode(value)) < STRING_LIMIT


def _encodable(value: str) -> bool:
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


def _shown(word: str) -> str:
    return repr(word[:80])
