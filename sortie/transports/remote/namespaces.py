"""PID namespaces on a host: the ways in which one is made and entered there.

The watchdog of a program makes the namespace, whose init only waits and reaps. What the host's sshd
has started enters it, and waits for the program there. The kernel ends all others in there before
it lets the end of the init be seen, and ends the init with the watchdog.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

_TIED = ("setpriv", "--pdeathsig", "KILL", "--")  # ends with its parent
_UNSHARE = (*_TIED, "unshare", "--pid", "--fork", "--kill-child=KILL")
# What is mounted on the host later is seen in there, too.
_PROC = ("--mount-proc", "--propagation", "slave")
_BWRAP = ("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--unshare-pid", "--as-pid-1")
_BWRAP_TIED = (*_BWRAP, "--die-with-parent")
_USER = ("--user", "--preserve-credentials")
_MOUNT = ("--mount", "--wd")


class Way(Struct, frozen=True, kw_only=True):
    """A way to make a PID namespace: ``make`` are the words before those of its init, ``enter``
    nsenter's options. ``own_proc`` tells whether it has a /proc of its own."""

    make: tuple[str, ...]
    enter: tuple[str, ...]
    own_proc: bool = True

    @property
    def maker(self) -> str:
        """The program that makes it."""
        return "unshare" if "unshare" in self.make else self.make[0]


WAYS = {
    "unshare": Way(make=(*_UNSHARE, *_PROC, "--"), enter=("--pid", *_MOUNT)),
    "unshare-user": Way(
        make=(*_UNSHARE, *_PROC, "--map-current-user", "--"), enter=("--pid", *_USER, *_MOUNT)
    ),
    "bwrap": Way(make=(*_BWRAP_TIED, "--proc", "/proc", "--"), enter=("--pid", *_USER, *_MOUNT)),
    "unshare-pid": Way(make=(*_UNSHARE, "--"), enter=("--pid",), own_proc=False),
    "unshare-user-pid": Way(
        make=(*_UNSHARE, "--map-current-user", "--"), enter=("--pid", *_USER), own_proc=False
    ),
    "bwrap-pid": Way(make=(*_BWRAP_TIED, "--"), enter=("--pid", *_USER, *_MOUNT), own_proc=False),
}
"""By their names, the better first."""

_IDLE = "while :; do sleep 86400; done"
_QUIET = "exec env --ignore-signal=CHLD sleep 2147483647"


class Namespaces(Struct, frozen=True, kw_only=True):
    """How namespaces are made on one host. ``quiet`` tells whether its env can ignore a signal,
    ``nsenter`` and ``setsid`` are paths there; ``flaws`` says why no better way is had."""

    way: Way
    nsenter: str
    setsid: str
    quiet: bool = True
    flaws: str = ""

    @property
    def idle(self) -> str:
        """What the init does. The kernel reaps for who ignores SIGCHLD; a shell does it itself, as
        long as it waits for a program."""
        return _QUIET if self.quiet else _IDLE

    @property
    def around_sandbox(self) -> Namespaces:
        """How the namespace around a sandbox is made: what bubblewrap has made of /proc lets nobody
        mount another one in there."""
        return replace(self, way=WAYS["bwrap-pid"]) if self.way == WAYS["bwrap"] else self

    @property
    def sentence(self) -> str:
        """What an operator is told."""
        told = (
            f"each program of a run there has a PID namespace of its own ({self.way.maker}): the"
            " kernel ends all that it started"
        )
        if self.way.own_proc:
            return told
        return f"{told}; its /proc shows the host's processes, as no other is had ({self.flaws})"


class NoNamespaces(Struct, frozen=True, kw_only=True):
    """Why none can be had on a host."""

    reason: str

    @property
    def sentence(self) -> str:
        """What an operator is told."""
        return (
            f"no PID namespace can be made there ({self.reason}): what runs leave is searched for"
        )


class NamespaceInit(Struct, frozen=True, kw_only=True):
    """The init of a namespace; ``ticks`` is its start, as the host's /proc shows it."""

    pid: int
    ticks: int


def read_probe(said: str) -> Namespaces | NoNamespaces:
    """Read what ``try_namespaces.sh`` says: five words and a reason. Raises ValueError."""
    name, quiet, nsenter, setsid, flaws = [*said.split(" ", 4), "", "", "", ""][:5]
    if name == "none":
        return NoNamespaces(reason=flaws)
    if name not in WAYS:
        raise ValueError("there is no such way to make a namespace")
    return Namespaces(
        way=WAYS[name], nsenter=nsenter, setsid=setsid, quiet=quiet == "quiet", flaws=flaws
    )
