"""Whether runs on this machine can work: a daemon whose disk is full leads no workflow that another
one could lead."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import trio

from sortie.config.settings import Settings
from sortie.resources import Shortage, run_in_thread

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.lease_keeper import LeaseKeeper

LOOK = 2.0
"""Seconds between two looks at the disk of the workspaces."""

_LOOKS_IN_A_ROW = 2  # that have to fail
_SAMPLE = b"\0" * 65536
_UNUSABLE = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}


def fault_of_disk(root: str) -> str | None:
    """Write a file of 64 KiB in the workspace root, and remove it; return why that is not possible.

    None also where there is no root yet, and where something else is in the way. Blocks.
    """
    path = os.path.join(root, f".sortie-room-{os.getpid()}")
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, _SAMPLE)
            os.fsync(fd)
        finally:
            os.close(fd)
            os.unlink(path)
    except OSError as exc:
        if exc.errno in _UNUSABLE:
            return f"the disk of the workspaces cannot be written: {exc.strerror}"
    return None


async def fault_now(settings: Settings) -> str | None:
    """Return why runs on this machine cannot work, None where they can, or live elsewhere."""
    if settings.worker.hosts:
        return None
    try:
        return await run_in_thread(fault_of_disk, settings.workspace.root)
    except Shortage:
        return None


async def watch_fitness(candidacy: Candidacy, keeper: LeaseKeeper, settings: Settings) -> None:
    """Stand for no lease while runs on this machine cannot work, and give up the one that is held
    where another daemon would lead the workflow."""
    failed = 0
    while True:
        fault = await fault_now(settings)
        failed = 0 if fault is None else failed + 1
        is_fit = failed < _LOOKS_IN_A_ROW
        if candidacy.is_fit != is_fit:
            candidacy.is_fit = is_fit
            keeper.join_again()
        if fault is not None and not is_fit and candidacy.lease and candidacy.has_others:
            candidacy.lose(f"{fault}; another daemon can lead the workflow", "unfit")
        await trio.sleep(LOOK)
