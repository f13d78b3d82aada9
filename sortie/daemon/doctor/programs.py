"""Questions to programs here and on hosts, which change nothing and are answered at once."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from shlex import quote

import trio
from msgspec import Struct

from sortie.model import ProgramNotFound, TransportError
from sortie.transports import Command, Transport

ANSWER_LIMIT = 10.0
"""Seconds for an answer."""

_ANSWER_BYTES = 64 * 1024

_HOME_PREFIX = re.compile(r"~[A-Za-z0-9._-]*", re.ASCII)
_PROBE_SCRIPT = """\
d=%s
while [ ! -e "$d" ] && [ "$d" != / ] && [ "$d" != . ]; do d=$(dirname -- "$d"); done
printf 'existing=%%s\\n' "$d"
[ -d "$d" ] && echo directory=yes
[ -w "$d" ] && [ -x "$d" ] && echo writable=yes
printf 'user=%%s\\n' "$(id -un)"
printf 'free=%%s\\n' "$(df -Pk -- "$d" 2>/dev/null | awk 'NR == 2 { print $4 }')"
printf 'clock=%%s\\n' "$(date +%%s)"
command -v git >/dev/null 2>&1 && echo git=yes
[ -r /proc/self/environ ] && echo proc=yes
echo over=yes
"""


class Answered(Struct, frozen=True, kw_only=True):
    """How a program exited, and what it wrote to stdout, without the space around it."""

    status: int | None
    said: str


async def answer_of(
    transport: Transport, environ: Mapping[str, str], *argv: str
) -> Answered | None:
    """Return what a program says, None where there is no such program, or it says nothing in time.

    Raises TransportError where its host cannot be asked.
    """
    output = bytearray()
    try:
        program = await transport.resolve_program(argv[0], environ.get("PATH"))
    except ProgramNotFound:
        return None
    command = Command(argv=(program, *argv[1:]), cwd="/", env=environ, grace=0.5)
    with trio.move_on_after(ANSWER_LIMIT):
        async with transport.process(command) as process:
            async for stream, chunk in process.output():
                if stream == 1:
                    output += chunk[: _ANSWER_BYTES - len(output)]
            end = await process.wait()
        return Answered(status=end.status, said=output.decode(errors="replace").strip())
    raise TransportError(f"{argv[0]} said nothing within {ANSWER_LIMIT:g} s on {transport.host}")


class HostProbe(Struct, frozen=True, kw_only=True):
    """What a host said. ``existing`` is the workspace root there, or what is above it and there;
    ``clock_ahead`` is how many seconds its clock is ahead of ours."""

    existing: str
    is_directory: bool
    writable: bool
    user: str
    free_bytes: int | None
    clock_ahead: float | None
    has_git: bool
    has_proc: bool


async def probe(transport: Transport, root: str) -> HostProbe:
    """Ask a host. Raises TransportError."""
    before = time.time()
    answer = await answer_of(transport, {}, "/bin/sh", "-c", _PROBE_SCRIPT % _spelled(root))
    middle = (before + time.time()) / 2
    said = {} if answer is None else _values(answer.said)
    if "over" not in said:
        raise TransportError(
            f"host {transport.host} runs our commands and does not answer them; look at the login"
            " files there, which must write nothing and end"
        )
    free, clock = said.get("free", ""), said.get("clock", "")
    return HostProbe(
        existing=said.get("existing", root),
        is_directory="directory" in said,
        writable="writable" in said,
        user=said.get("user") or "who logs in",
        free_bytes=int(free) * 1024 if free.isdecimal() else None,
        clock_ahead=float(clock) - middle if clock.isdecimal() else None,
        has_git="git" in said,
        has_proc="proc" in said,
    )


def _values(text: str) -> Mapping[str, str]:
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, _, value in pairs}


def _spelled(root: str) -> str:
    """Return a path as a word of shell, where ``~`` at its beginning is a home directory."""
    first, slash, rest = root.partition("/")
    if _HOME_PREFIX.fullmatch(first):
        return f"{first}{slash}{quote(rest) if rest else ''}"
    return quote(root)
