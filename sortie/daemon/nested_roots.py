"""Workspace roots that lie in one another: two daemons would take what they find for their own.

An agent of the outer daemon lives in its workspace, and so in the root of the inner one, whose
daemon would see a stranger there; and the outer one would remove the inner root with a workspace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

LOCK_NAME = "@daemon.lock"

_DEPTH = 8  # levels below a root at which another root is looked for
_DIRECTORIES = 50_000  # that are looked at below a root
_SECONDS = 3.0  # for that


def nested_with(root: str, holder_of: Callable[[str], str | None]) -> str | None:
    """Return what to tell of another daemon whose root this one lies in, or holds; else None.

    ``holder_of`` tells who holds the lock file at a path. All directories above are looked at, and
    below as many as a start can wait for. Blocks.
    """
    here = os.path.realpath(root)
    for above in _above(here):
        if (holder := holder_of(os.path.join(above, LOCK_NAME))) is not None:
            return _told(f"{root} lies inside {above}, the workspace root", holder)
    for below in _below(here):
        if (holder := holder_of(os.path.join(below, LOCK_NAME))) is not None:
            return _told(f"{root} holds {below}, the workspace root", holder)
    return None


def _told(where: str, holder: str) -> str:
    return (
        f"the workspace root {where} of another daemon ({holder}); give each daemon a root outside"
        " the other's, with workspace.root"
    )


def _above(path: str) -> Iterator[str]:
    while (parent := os.path.dirname(path)) != path:
        yield parent
        path = parent


def _below(root: str) -> Iterator[str]:
    """Yield the directories below a root in which there is such a lock file, the nearest first."""
    until = time.monotonic() + _SECONDS
    level, seen = [root], 0
    for _ in range(_DEPTH):
        following: list[str] = []
        for directory in level:
            seen += 1
            if seen > _DIRECTORIES or time.monotonic() > until:
                return
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            following.append(entry.path)
                        elif entry.name == LOCK_NAME and directory != root:
                            yield directory
            except OSError:
                continue  # nobody's root that cannot be read
        level = following
