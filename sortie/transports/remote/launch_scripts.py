"""Writes the scripts that start a program on a remote host and pass its stdin on."""

from __future__ import annotations

import os
from collections.abc import Iterable

from sortie.model import TransportError
from sortie.transports import COOKIE, HOST_VARIABLES, WRAPPED_STDIN, Stdin
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.remote.container_launch import VARIABLE, entering_words
from sortie.transports.remote.fence import launch_given, launch_lines, start_lines
from sortie.transports.remote.namespaces import Namespaces
from sortie.transports.remote.remote_launch import STRING_LIMIT, RemoteLaunch
from sortie.transports.remote.scripts import (
    assignment,
    assignments,
    block,
    quoted,
    quoted_anywhere,
    shown,
    text,
    texts,
    word,
    words,
)

_OPEN_PLACE = 'exec "$@"'
_OPEN_PIPE = 'command -p rm -rf -- "${0%/*}"; exec "$@"'
"""What follows where a program has opened its stdin."""
ON_STDIN = b"exec 3<&0"
"""Begins a launch whose script and lease come on one stdin."""
# bash makes these read-only: setting one would end the script.
_BASH_READ_ONLY = frozenset({"UID", "EUID", "PPID", "SHELLOPTS", "BASHOPTS", "BASH_VERSINFO"})


def given_to_launch(launch: RemoteLaunch) -> dict[str, str]:
    """Return the variables that a launch script begins with."""
    command = launch.command
    contained = command.container is not None
    given = {
        **launch_given(launch.fence),
        "nonce": launch.nonce,
        # What is in a container is looked for in there.
        "program": "" if launch.inline or contained else command.argv[0],
        "cwd": command.cwd,
        "stdin": str(len(launch.stdin)) if launch.stdin else "",
        "piped": "yes" if command.stdin is Stdin.PIPE else "",
        "marker": str(launch.marker),
        "cookie": launch.cookie,
        "grace": str(launch.centiseconds),
        "lease": f"{launch.lease:g}",
        "wrappers": str(command.wrappers),
        "kept": " ".join((*HOST_VARIABLES, *launch.variables)),
    }
    if "PATH" in command.env:
        given["search"] = command.env["PATH"]
    return given


def launch_script(launch: RemoteLaunch) -> bytes:
    """Return the script that becomes the program."""
    given = given_to_launch(launch)
    become = _become_inline(launch) if launch.inline else _become(launch)
    return block(
        ON_STDIN,
        *assignments(given),
        b"unset search" if "search" not in given else b"",
        assignment("ELF", "\x7fELF"),
        text("find_program"),
        *launch_lines(launch.fence),
        *_watching(launch),
        *start_lines(launch.fence),
        text("go_on"),
        become,
    )


def watch_function(launch: RemoteLaunch, watchdog: Iterable[bytes]) -> bytes:
    """Return the function that starts a watchdog with these lines."""
    lines = list(watchdog)
    if launch.namespaces is not None:
        lines.insert(0, b"hold() { become_holder %s; }" % words(launch.namespaces.way.make))
    watch = b"watch() {\napart /bin/sh -s -- \"$@\" <<'SORTIE_WATCHDOG' &\n%s\nSORTIE_WATCHDOG\n}"
    return watch % b"\n".join(lines)


def _watching(launch: RemoteLaunch) -> list[bytes]:
    """Return what begins a launch, up to where its watchdog is there."""
    # What its last word begins with is not for its arguments: the program could read them there.
    name = assignment("N", launch.nonce)
    if launch.namespaces is None:
        watchdog = [name, *texts("stat_of", "clock", "newest", "end_tree", "lease", "watchdog")]
        return [watch_function(launch, watchdog), *texts("start", "watched")]
    watchdog = [
        name,
        *making_namespace(launch.namespaces.idle),
        *texts("stat_of", "clock", "lives", "child_of", "innermost", "lease", "namespace_watchdog"),
    ]
    reading = texts("stat_of", "child_of", "await_namespace")
    return [watch_function(launch, watchdog), *reading, *texts("start", "namespaced")]


def making_namespace(idle: str) -> list[bytes]:
    """Return the lines by which a script can become the holder of a namespace."""
    return [assignment("idle", idle), text("namespace_holder")]


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
    # In a container it would be seen, with the files of the host.
    if launch.namespaces is not None and launch.command.container is None:
        inside = _entering(launch.namespaces, b"%d" % init)
    passing = b'inside() { exec %s "$@"; }' % inside
    return block(*assignments(given), passing, text("stdin"))


def inline_command(launch: RemoteLaunch, script: bytes) -> str:
    """Return the remote command that runs a launch's script. Raises TransportError."""
    line = b"exec /bin/sh -c " + quoted_anywhere(script)
    try:
        if len(line) < STRING_LIMIT:
            return line.decode()
    except UnicodeDecodeError:
        pass
    raise TransportError(
        f"could not start {shown(launch.command.argv[0])}: its arguments are too long for a remote"
        " command line (128 KiB) or not valid UTF-8; set worker.ssh_secret_delivery to stdin"
    )


def become_lines(launch: RemoteLaunch) -> list[bytes]:
    """Return the lines that become a supervised program, whose output is where it goes already."""
    leading = b"" if launch.namespaces is not None else b'"$setsid"'
    return [*_exports(launch), _exec(launch, leading, '"$place/in"', _OPEN_PLACE)]


def _become(launch: RemoteLaunch) -> bytes:
    begun = b"exec 2>&6 6>&- 7>&-\nsay_started"
    return b"\n".join([*_exports(launch), begun, _exec(launch, b"", '"$pipe/stdin"', _OPEN_PIPE)])


def _exports(launch: RemoteLaunch) -> list[bytes]:
    given = launch.command.env
    if launch.command.container is None:
        return [_export(name, value) for name, value in given.items()]
    # What enters the container is a program of the host's, and its variables are no image's.
    variables = [_export(f"{VARIABLE}{name}", value) for name, value in given.items()]
    return [*variables, *([_export(COOKIE, given[COOKIE])] if COOKIE in given else ())]


def _exec(launch: RemoteLaunch, leading: bytes, fifo: str, opened: str) -> bytes:
    """Return the line that becomes the program."""
    arguments = [quoted(argument) for argument in launch.command.argv[1:]]
    stdin = b"<&5 3<&- 5<&-"
    if isinstance(launch.command.container, HostEntrance):
        removed = opened == _OPEN_PIPE
        entry = entering_words(launch.command.container, launch.command, fifo, removed=removed)
        return b" ".join([b"exec", entry, *arguments, stdin])
    inside = _inside(launch, fifo, opened)
    if launch.command.wrappers:
        stdin = b"%d<&5 5<&- </dev/null" % WRAPPED_STDIN  # in the place of the lease
    return b" ".join([b"exec", leading, inside, b'"$found"', *arguments, stdin])


def _become_inline(launch: RemoteLaunch) -> bytes:
    command = launch.command
    variables = [
        b"%s=%s" % (name.encode(), quoted(value))
        for name, value in command.env.items()
        if name not in _BASH_READ_ONLY
    ]
    arguments = [quoted(argument) for argument in command.argv[1:]]
    line = b" ".join([*variables, os.fsencode(command.argv[0]), *arguments])
    line = b"cd -- %s && %s" % (quoted(command.cwd), line)
    if launch.namespaces is not None:
        line = b"exec %s /bin/sh -c %s" % (
            _inside(launch, '"$pipe/stdin"', _OPEN_PIPE),
            quoted(os.fsdecode(line)),
        )
    return b"exec 2>&6 6>&- 7>&- <&5 3<&- 5<&-\nsay_started\n%s\nexit" % line


def _inside(launch: RemoteLaunch, fifo: str, opened: str) -> bytes:
    """Return the words that run what follows in the launch's namespace, leading a session; none
    where it has no namespace. It opens its stdin, the word ``fifo``, in there, and then ``opened``
    follows."""
    if launch.namespaces is None:
        return b""
    entering = _entering(launch.namespaces, b'"$namespace_init"')
    inside = b"%s %s" % (entering, word(launch.namespaces.setsid))
    if launch.command.stdin is Stdin.PIPE:
        # What waits for the program has all that we have open, and would keep its stdin open.
        at = WRAPPED_STDIN if launch.command.wrappers else 0
        opening = quoted(f'exec {at}<"$0"; {opened}')
        return b"%s /bin/sh -c %s %s" % (inside, opening, fifo.encode())
    return inside


def _export(name: str, value: str) -> bytes:
    line = b"export %s=%s" % (name.encode(), quoted(value))
    return b"command " + line + b" 2>/dev/null" if name in _BASH_READ_ONLY else line
