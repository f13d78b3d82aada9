"""Limits of memory and tasks that agents meet before the daemon does.

A service manager limits a unit as a whole, so that an agent which takes all there is takes it from
the daemon as well. Where the daemon's cgroup is delegated to it and has limits, the cgroup of its
commands gets the same ones, less what is kept for the daemon.

A cgroup whose controllers are enabled for those below it may hold no process itself (the rule of
no internal processes of cgroup v2), so the daemon moves into one of its own beside its commands.
"""

from __future__ import annotations

import os
from contextlib import suppress

from msgspec import Struct

from sortie.transports.local.cgroup_files import move, read_text, write_text

KEPT_MEMORY = 512 * 1024 * 1024
"""Bytes that are kept for the daemon, or a quarter of the limit where that is less."""

KEPT_TASKS = 256
"""Threads and processes that are kept for the daemon, or a quarter of the limit."""

LEAF = "sortie-daemon"
"""The cgroup into which the daemon moves."""

_SHARE = 4
_DELEGATED = ("user.delegate", "trusted.delegate")


class AgentLimits(Struct, frozen=True, kw_only=True):
    """What all commands together may use, in bytes and in threads and processes; None: no limit."""

    memory: int | None = None
    tasks: int | None = None


def limit_agents(own: str, commands: str) -> AgentLimits:
    """Limit the cgroup of all commands below our own one; return what that came to.

    Nothing is done, and nothing is limited, where our own one has no limits or is not ours.
    """
    memory = _less(_limit_of(own, "memory.max"), KEPT_MEMORY)
    tasks = _less(_limit_of(own, "pids.max"), KEPT_TASKS)
    if (memory is None and tasks is None) or not _is_delegated(own):
        return AgentLimits()
    leaf = f"{own}/{LEAF}"
    try:
        with suppress(FileExistsError):
            os.mkdir(leaf)
        move(os.getpid(), leaf)
    except OSError:
        return AgentLimits()
    set_ = AgentLimits(
        memory=_enforce(own, commands, "memory", memory),
        tasks=_enforce(own, commands, "pids", tasks),
    )
    if set_ == AgentLimits():
        with suppress(OSError):  # another process is in our cgroup, and it would stay there alone
            move(os.getpid(), own)
            os.rmdir(leaf)
    return set_


def _is_delegated(own: str) -> bool:
    """Tell whether a cgroup was handed over to us: it is marked so, or ours while we are not root.

    See systemd's CGROUP_DELEGATION.md.
    """
    if os.geteuid() != 0:
        return os.access(f"{own}/cgroup.subtree_control", os.W_OK)
    for name in _DELEGATED:
        with suppress(OSError):
            if os.getxattr(own, name) == b"1":
                return True
    return False


def _limit_of(directory: str, file: str) -> int | None:
    try:
        return int(read_text(f"{directory}/{file}"))
    except (OSError, ValueError):  # "max", or a controller that is not there
        return None


def _less(limit: int | None, kept: int) -> int | None:
    return None if limit is None else limit - min(kept, limit // _SHARE)


def _enforce(own: str, commands: str, controller: str, limit: int | None) -> int | None:
    """Have a controller keep a limit; return the limit, None where that could not be had."""
    if limit is None:
        return None
    try:
        write_text(f"{own}/cgroup.subtree_control", f"+{controller}")
        write_text(f"{commands}/{controller}.max", str(limit))
    except OSError:
        return None
    return limit
