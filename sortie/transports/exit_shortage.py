"""A program that ended because its machine was short of something, by its exit and its last words.

The loader and shells have no exit status of their own for that: they use those for a program that
is not there.
"""

from __future__ import annotations

from sortie.model import LOCAL, HostError, HostTrouble, TransportError
from sortie.resources import note
from sortie.resources.shortages import of_exit
from sortie.transports import Exit


def exit_shortage(what: str, host: str, end: Exit | None, errors: str) -> TransportError | None:
    """Return the error for a program that could not start for want of something, else None.

    ``what`` is the program in messages, ``errors`` the end of what it wrote to stderr, without
    secrets. The shortage is this machine's, and taken down, or the remote host's trouble.
    """
    if end is None or end.by_us:
        return None
    shortage = of_exit(end.status, errors)
    if shortage is None:
        return None
    said = errors.strip().splitlines()[-1].strip()
    if host != LOCAL:
        return HostError(
            HostTrouble.UNREACHABLE, f"{what} could not start on host {host}: {said}: {shortage}"
        )
    note(shortage)
    error = TransportError(f"{what} could not start: {said}: {shortage}")
    error.__cause__ = shortage
    return error
