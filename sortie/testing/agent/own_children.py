"""Processes that an adapter started beside its transport: they are children of this process."""

from __future__ import annotations

from collections.abc import Collection

import psutil

from sortie.testing.checks import NotKept


def own_children() -> set[psutil.Process]:
    """Return the children of this process that run."""
    return {child for child in psutil.Process().children() if _runs(child)}


def require_no_more_children(before: Collection[psutil.Process]) -> None:
    """End the children that were not there before. Raises NotKept where there are any."""
    more = own_children() - set(before)
    names = sorted(_name(child) for child in more)
    for child in more:
        child.kill()
    psutil.wait_procs(more, timeout=5)
    if more:
        raise NotKept(
            f"{len(more)} processes were started beside the transport and left: {', '.join(names)}"
        )


def _runs(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return "ended meanwhile"
