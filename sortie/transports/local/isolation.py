"""Finds out by trying whether the programs of runs can have PID namespaces on this machine.

There is one net for a machine. Where namespaces are had, the kernel ends what a run has started.
Elsewhere processes are searched for, by all means that this system has.
"""

from __future__ import annotations

import os

from msgspec import Struct

from sortie.config.settings import Isolation
from sortie.model import SortieError
from sortie.resources.prctl import is_subreaper
from sortie.transports.local.cgroups import RunGroups
from sortie.transports.local.fork_client import ForkServer, NoNamespace, no_namespace
from sortie.transports.local.mark import carry

_TRIAL = ("/bin/sh", "-c", "exit 0")
_SEARCHED = "what runs leave behind is searched for"


class IsolationInForce(Struct, frozen=True, kw_only=True):
    """What ends the processes of runs on this machine.

    ``namespaces``: the kernel does, with the PID namespace of each program; ``refused`` where they
    are wanted and not had. ``detail`` is a sentence for an operator. ``server`` starts programs;
    it is None where this process cannot adopt what that one starts. ``mark`` is the mark that this
    process carries; ``groups`` are the cgroups that it can make.
    """

    namespaces: bool = False
    detail: str = _SEARCHED
    refused: bool = False
    server: ForkServer | None = None
    mark: int | None = None
    groups: RunGroups | None = None


def establish_isolation(
    wanted: Isolation, mark: int, groups: RunGroups | None = None
) -> IsolationInForce:
    """Start a program in a PID namespace, and decide by that; blocks for some 50 ms.

    Where there are no namespaces, this process carries the mark from now on. Raises SortieError
    where namespaces are demanded and cannot be had.
    """
    if wanted is Isolation.NONE:
        why = "isolation is none"
    elif not is_subreaper():
        why = "no PID namespace can be made: this system has none, or no child subreapers"
    else:
        server = ForkServer(
            namespaces=True, cgroup="" if groups is None else groups.new(None).make()
        )
        try:
            old_proc = try_namespace(server)
        except OSError as exc:
            server.close()
            why = no_namespace(exc) if isinstance(exc, NoNamespace) else f"{exc}"
        else:
            return IsolationInForce(
                namespaces=True,
                detail=_sentence(old_proc),
                server=server,
                groups=groups,
            )
    if wanted is Isolation.PID_NAMESPACE:
        raise SortieError(
            f"isolation is pid-namespace, but {why}; mend that, or set isolation to auto"
        )
    return IsolationInForce(
        detail=f"{why}: {_SEARCHED}",
        refused=wanted is not Isolation.NONE,
        mark=mark if carry(mark) else None,
        server=plain_fork_server(),
        groups=groups,
    )


def try_isolation() -> str:
    """Start a program in a PID namespace; return what the kernel then does, as a sentence.

    This process has to be a child subreaper. Blocks. Raises OSError where it fails, and says why.
    """
    server = ForkServer(namespaces=True)
    try:
        return _sentence(try_namespace(server))
    except NoNamespace as exc:
        raise OSError(exc.errno, no_namespace(exc)) from exc
    finally:
        server.close()


def plain_fork_server() -> ForkServer | None:
    """Return a server that makes no namespaces, None where this process adopts no orphans."""
    if not is_subreaper():
        return None
    server = ForkServer(namespaces=False)
    server.open()
    return server


def _sentence(old_proc: int | None) -> str:
    sentence = "each program of a run has a PID namespace of its own, and the kernel ends all in it"
    if old_proc is None:
        return sentence
    return (
        f"{sentence}; /proc shows the processes of the whole machine there, as mounting a new one"
        f" is refused ({os.strerror(old_proc)})"
    )


def try_namespace(server: ForkServer) -> int | None:
    """Start a program in a namespace and wait for it; return why /proc is the old one, if it is.

    Raises OSError where this fails.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        stdio = (null, null, null)
        started = server.start(_TRIAL, program=_TRIAL[0], cwd="/", env={}, stdio=stdio)
    finally:
        os.close(null)
    os.waitpid(started.pid, 0)
    if started.status() != 0:
        raise OSError("a program in a PID namespace did not end as it should")
    return started.old_proc
