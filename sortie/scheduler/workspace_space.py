"""How much disk workspaces take, and what that forbids."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping

from msgspec import Struct

from sortie.model import KnownWorkspace
from sortie.model.numbers import bytes_text

WARN_SHARE = 0.8
"""Of a limit that is taken, from which on it is told."""


class SpaceLimits(Struct, frozen=True, kw_only=True):
    """Bytes of all workspaces of a host, and of one; 0 is no limit."""

    total: int = 0
    each: int = 0


class WorkspaceSpace:
    """The last measures of each host, in bytes by the directory's name."""

    def __init__(self) -> None:
        self._sizes: dict[str, Mapping[str, int]] = {}

    def measured(self, host: str, sizes: Mapping[str, int]) -> None:
        """Take over a measure."""
        self._sizes[host] = sizes

    def host_full(self, host: str, limits: SpaceLimits) -> str | None:
        """Say that no run may start on a host for want of room, None where one may."""
        used = self._used(host)
        if not limits.total or used < limits.total:
            return None
        return f"has workspaces of {bytes_text(used)} of {bytes_text(limits.total)}"

    def issue_full(self, known: Iterable[KnownWorkspace], limits: SpaceLimits) -> str | None:
        """Say that an issue may not run again for the size of its workspace, None where it may."""
        for workspace in known if limits.each else ():
            sizes = self._sizes.get(workspace.host, {})
            used = sizes.get(posixpath.basename(workspace.path), 0)
            if used >= limits.each:
                return (
                    f"its workspace takes {bytes_text(used)}, and workspace.max_bytes_each allows"
                    f" {bytes_text(limits.each)}"
                )
        return None

    def low(self, limits: SpaceLimits) -> tuple[tuple[str, int], ...]:
        """Return the hosts on which the limit is nearly or wholly reached, and what is used."""
        if not limits.total:
            return ()
        used = ((host, self._used(host)) for host in sorted(self._sizes))
        return tuple((host, n) for host, n in used if n >= WARN_SHARE * limits.total)

    def _used(self, host: str) -> int:
        return sum(self._sizes.get(host, {}).values())
