"""What the fork server is asked for: a program to start, as a file that its middleman reads."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from contextlib import suppress

STATUS = struct.Struct("=qi")
"""What init writes to the pipe of statuses: the number of the request, and a wait status."""

NAMESPACE, PLAIN, INSIDE = b"namespace", b"plain", b"inside"
HEAD_FIELDS = 11  # before the arguments and the environment

DESCRIPTORS = 5
"""How many come with a request; there is one more for a program in a container."""


def encoded(
    number: int,
    mode: bytes,
    cgroup: str,
    program: str,
    cwd: str,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    wrappers: int,
    stdin: int,
    port: int,
    entered: int = 0,
) -> bytes:
    """Return a request as the server reads it. ``cgroup`` is a file that the program's pid is
    written to before it is executed, or empty; in a container these are several, on lines.
    ``wrappers`` is as in a Command, ``stdin`` the descriptor at which the stdin is found, and
    ``port`` where to listen in a network of its own, 0 where the program has none. ``entered`` are
    the flags of the namespaces of its container."""
    words = [str(number).encode(), mode, *map(os.fsencode, (cgroup, program, cwd))]
    words += [str(one).encode() for one in (wrappers, stdin, port, entered, len(argv), len(env))]
    words += map(os.fsencode, argv)
    words += (os.fsencode(f"{name}={value}") for name, value in env.items())
    return b"\0".join(words)


class Request:
    """A program to start; texts are bytes."""

    def __init__(self, fds: list[int]) -> None:
        self.file, self.report, *self.stdio = fds[:DESCRIPTORS]
        self.containers = fds[DESCRIPTORS:]
        with open(self.file, "rb") as file:
            words = file.read().split(b"\0")
        number, self.mode, self.cgroup, self.program, self.cwd = words[:5]
        self.number = int(number)
        numbers = map(int, words[5:HEAD_FIELDS])
        self.wrappers, self.stdin, self.port, self.entered, arguments, _ = numbers
        split = HEAD_FIELDS + arguments
        self.argv = words[HEAD_FIELDS:split]
        self.env = dict(word.split(b"=", 1) for word in words[split:])

    def tell(self, *words: object) -> None:
        """Add a line to the report, as long as there is a daemon to read it."""
        with suppress(BrokenPipeError):
            os.write(self.report, " ".join(map(str, words)).encode() + b"\n")
