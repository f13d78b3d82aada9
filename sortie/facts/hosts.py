"""Facts about remote hosts, and about processes that were left on any machine."""

from __future__ import annotations

from sortie.facts.fact import Fact, Level, fact
from sortie.model import RunId


@fact("host.rested", "warning")
class HostPaused(Fact, frozen=True, kw_only=True):
    """A remote host could not be used and is given nothing to do for ``seconds``."""

    host: str
    error: str
    seconds: float


@fact("host.noticed", "warning")
class HostNoticed(Fact, frozen=True, kw_only=True):
    """A host works, and there is something about it that its operator should mend."""

    host: str
    message: str


@fact("host.isolation", "info")
class HostIsolation(Fact, frozen=True, kw_only=True):
    """What ends the processes of runs on a host: published with its first use, and when it changes.

    ``refused``: PID namespaces are wanted and cannot be had.
    """

    host: str
    detail: str
    refused: bool = False

    @property
    def level(self) -> Level:
        return "warning" if self.refused else "info"


@fact("host.link_lost", "warning")
class HostLinkLost(Fact, frozen=True, kw_only=True):
    """The link to a host was lost, and a run goes on there, for ``seconds`` at most."""

    host: str
    run_id: RunId
    error: str
    seconds: float


@fact("host.link_restored", "info")
class HostLinkRestored(Fact, frozen=True, kw_only=True):
    """A run whose link was lost is attached to again, after ``seconds``."""

    host: str
    run_id: RunId
    seconds: float


@fact("pod.ready", "info")
class PodReady(Fact, frozen=True, kw_only=True):
    """An issue has a pod that runs, ``seconds`` after it asked for one; ``origin`` is ``warm`` or
    ``cold``."""

    host: str
    pod: str
    origin: str
    seconds: float


@fact("pods.warm", "info")
class WarmPodsCounted(Fact, frozen=True, kw_only=True):
    """So many warm pods wait for an issue now, of those that are wanted; a warning with ``error``
    where something is in the way of the others."""

    host: str
    ready: int
    wanted: int
    error: str | None = None

    @property
    def level(self) -> Level:
        return "info" if self.error is None else "warning"


@fact("host.given_up", "warning")
class HostGivenUp(Fact, frozen=True, kw_only=True):
    """A remote host has been in trouble so long that its issues begin anew on others."""

    host: str


@fact("host.back", "info")
class HostBack(Fact, frozen=True, kw_only=True):
    """A remote host that was in trouble does its work again."""

    host: str


@fact("orphans.reaped", "warning")
class OrphansReaped(Fact, frozen=True, kw_only=True):
    """Processes of runs that are over were ended; ``where`` is local or host."""

    where: str
    count: int

    @property
    def level(self) -> Level:
        return "warning" if self.count else "debug"


@fact("orphans.left", "error")
class OrphansLeft(Fact, frozen=True, kw_only=True):
    """Processes of an earlier daemon could not be ended; the issues of their runs are held."""

    where: str
    error: str


@fact("orphans.sought", "info")
class OrphansSought(Fact, frozen=True, kw_only=True):
    """What so many runs of an earlier daemon left on a remote host is being looked for."""

    host: str
    runs: int
