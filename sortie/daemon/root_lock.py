"""The lock of a workspace root.

Rule 1: a root that was removed or replaced, or whose disk is not mounted, is not made anew in
silence: agents would begin in empty directories.
Rule 2: no root lies inside another daemon's root. The daemon of the inner root would see agents of
the outer one in its workspaces, and the outer one would remove the inner root with a workspace.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator

from sortie.daemon.locks import LOCK_NOTE_BYTES, HeldElsewhere, Lock, holder_of
from sortie.model import WorkspaceError

ROOT_LOCK_NAME = "@daemon.lock"

_SEARCH_DEPTH = 8  # levels below a root at which another root is looked for
_SEARCHED_DIRECTORIES = 50_000  # that are looked at below a root
_SEARCH_SECONDS = 3.0  # for that


def root_lock_path(root: str) -> str:
    """Return the path of the lock file of a workspace root."""
    return os.path.join(root, ROOT_LOCK_NAME)


class RootLock(Lock):
    """The lock in a workspace root, which also recognises the root."""

    def __init__(self, root: str) -> None:
        super().__init__(root_lock_path(root), f"the workspace root {root}", root)
        self._root = root
        self._identity: tuple[int, int] | None = None

    def ensure(self) -> None:
        """Hold the lock from now on; see Lock. Raises WorkspaceError where it is another root, and
        HeldElsewhere where one of another daemon lies in it, or it in that."""
        self.check()
        is_new = self._identity is None
        super().ensure()
        if is_new and (other := _nested_with(self._root)) is not None:
            self.release()
            raise HeldElsewhere(other)
        self._identity = _identity(self._root)

    def check(self) -> bool:
        """Tell whether the root is the directory that was locked; False where none was yet.

        One that is mounted again is known by the lock file in it, which holds our note. Raises
        WorkspaceError for another directory, and where there is none any more.
        """
        if self._identity is None:
            return False
        if self._identity == _identity(self._root) or self._holds_our_note():
            return True
        raise WorkspaceError(
            f"the workspace root {self._root} is not what it was when it was locked: it was removed"
            " or replaced, or its disk is not mounted; bring it back, or restart the daemon to"
            " begin with what is there now"
        )

    def _holds_our_note(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return self._note == os.pread(fd, LOCK_NOTE_BYTES, 0)
        finally:
            os.close(fd)


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = os.stat(directory)
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None


def _nested_with(root: str) -> str | None:
    """Say that another daemon's root lies around or inside this one, None where none does.

    All directories above are searched, and below as many as a start can wait for. Blocks.
    """
    here = os.path.realpath(root)
    for above in _above(here):
        if (holder := holder_of(os.path.join(above, ROOT_LOCK_NAME))) is not None:
            return _refusal(f"{root} lies inside {above}, the workspace root", holder)
    for below in _below(here):
        if (holder := holder_of(os.path.join(below, ROOT_LOCK_NAME))) is not None:
            return _refusal(f"{root} holds {below}, the workspace root", holder)
    return None


def _refusal(where: str, holder: str) -> str:
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
    until = time.monotonic() + _SEARCH_SECONDS
    level, seen = [root], 0
    for _ in range(_SEARCH_DEPTH):
        following: list[str] = []
        for directory in level:
            seen += 1
            if seen > _SEARCHED_DIRECTORIES or time.monotonic() > until:
                return
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            following.append(entry.path)
                        elif entry.name == ROOT_LOCK_NAME and directory != root:
                            yield directory
            except OSError:
                continue  # a root of ours can be read
        level = following
