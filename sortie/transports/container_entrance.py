"""How programs get into a container, on this machine and on a remote host."""

from __future__ import annotations

from msgspec import Struct


class ContainerEntrance(Struct, frozen=True, kw_only=True):
    """How programs get into a container of this machine: ``pidfd`` refers to the process that keeps
    it, ``namespaces`` are the flags of setns(2) of those that it does not share with this process,
    and ``cgroups`` the files by which a process enters its limits."""

    pidfd: int
    namespaces: int
    cgroups: tuple[str, ...] = ()


class HostEntrance(Struct, frozen=True, kw_only=True):
    """How programs get into a container of a remote host: the ``words`` there that start what
    enters it, and the process that keeps it, by its ``pid`` and its start in clock ticks. Where
    ``proxy`` is the path of a socket, a program has a network of its own, in which a port leads to
    that; else it has the container's."""

    words: tuple[str, ...]
    pid: int
    ticks: int
    proxy: str = ""

    def make(self, cwd: str, search: str, program: str) -> tuple[str, ...]:
        """Return the words that make a PID namespace in it for a program, which is looked for."""
        keeper = (str(self.pid), str(self.ticks))
        return (*self.words, "make", *keeper, cwd, search, program, self.proxy)

    def enter(self) -> tuple[str, ...]:
        """Return the first words that start a program in such a namespace."""
        return (*self.words, "enter", str(self.pid), str(self.ticks))
