"""What a program in a container of a remote host is started by there; see ``container_entry``."""

from __future__ import annotations

import os

from sortie.transports import Command, Stdin
from sortie.transports.container_entrance import HostEntrance
from sortie.transports.remote.namespaces import Namespaces, Way
from sortie.transports.remote.scripts import words

VARIABLE = "sortie_variable_"
"""What the name of a program's variable begins with on its way into a container. What enters that
is a program of the host's, whose variables are not to be an image's."""


def namespaces_in(command: Command) -> Namespaces | None:
    """Return how a program gets a PID namespace in its container; None where it has none."""
    container = command.container
    if not isinstance(container, HostEntrance):
        return None
    search = command.env.get("PATH", os.defpath)
    make = container.make(command.cwd, search, command.argv[0])
    return Namespaces(way=Way(make=make, enter=()), nsenter="", setsid="")


def entering_words(container: HostEntrance, command: Command, fifo: str, *, removed: bool) -> bytes:
    """Return the words of a shell before a program's arguments that start it in its container.

    ``fifo`` is the word of the FIFO that it reads where it has a PIPE; that is ``removed`` with its
    directory once it is open.
    """
    known = b'%s "$namespace_init"' % words(container.enter())
    piped = command.stdin is Stdin.PIPE
    stdin = fifo.encode() if piped else b"''"
    taken = words((command.cwd, container.proxy))
    named = words(("yes" if piped and removed else "", command.argv[0]))
    return b" ".join([known, taken, stdin, named])
