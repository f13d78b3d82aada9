"""Makes and removes directories inside a root, whatever stands there instead of them.

Rule 1: the root is no link and belongs to us; a root that is missing is made with mode 0700.
Rule 2: what is no directory is left alone.
"""

from __future__ import annotations

import os
from contextlib import suppress

from sortie.model import TransportError
from sortie.resources import shortage_behind
from sortie.transports.local.mounts import mounts_in
from sortie.transports.local.removal import Removal
from sortie.transports.local.safe_open import DIRECTORY, opened, plain, single, translated


def make(root: str, name: str) -> tuple[str, bool]:
    """Make ``root/name``; return its real path and whether it is new. Raises TransportError."""
    single(name)
    root = plain(root)
    with translated(f"make the directory {root}"):
        _make_root(root)
    with translated(f"open the directory {root}"), opened(root) as root_fd:
        _check_owner(root, root_fd)
        with translated(f"make the directory {name} in {root}"):
            created = _make_in(root_fd, name)
            real_root = os.path.realpath(root, strict=True)
            _check_same(root_fd, real_root)
    return os.path.join(real_root, name), created


def remove(root: str, name: str) -> bool:
    """Remove ``root/name`` with all it holds; return whether it was there.

    Raises TransportError where it is no directory or something in it stays; where something is
    mounted in it, all of it does. Can be cancelled between two files.
    """
    single(name)
    root = plain(root)
    path = os.path.join(root, name)
    if not os.path.lexists(root):
        return False
    with translated(f"open the directory {root}"), opened(root) as root_fd:
        _check_owner(root, root_fd)
        with translated(f"remove {path}"):
            _check_mounts(path)
            try:
                Removal(path).remove(root_fd, name)
            except FileNotFoundError:
                return False
    return True


def contained(root: str, path: str) -> bool:
    """Tell whether ``path`` is a directory, no link, whose real path lies in the real root.

    Raises TransportError where a shortage leaves that unknown.
    """
    with translated(f"look at {path}"):
        try:
            return _is_contained(root, path)
        except (OSError, ValueError, TransportError) as exc:
            if shortage_behind(exc) is not None:
                raise
            return False


def _is_contained(root: str, path: str) -> bool:
    with opened(path) as fd:
        real_root = os.path.realpath(root, strict=True)
        real = os.path.realpath(path, strict=True)
        inside = os.path.commonpath([real_root, real]) == real_root and real != real_root
        return inside and os.path.samestat(os.fstat(fd), os.stat(real))


def _make_root(root: str) -> None:
    os.makedirs(os.path.dirname(root), exist_ok=True)
    with suppress(FileExistsError):
        os.mkdir(root, 0o700)


def _make_in(root_fd: int, name: str) -> bool:
    try:
        os.mkdir(name, 0o700, dir_fd=root_fd)
        created = True
    except FileExistsError:
        created = False
    os.close(os.open(name, DIRECTORY, dir_fd=root_fd))  # raises for what is no directory
    return created


def _check_owner(root: str, root_fd: int) -> None:
    owner = os.fstat(root_fd).st_uid
    if owner != os.geteuid():
        raise TransportError(
            f"the directory {root} belongs to the user with id {owner}, not to"
            f" {os.geteuid()}; choose a root of your own"
        )


def _check_mounts(path: str) -> None:
    """Raise TransportError where something is mounted in a directory."""
    points = mounts_in(os.path.realpath(path))
    if points:
        more = f" and {len(points) - 1} more" if len(points) > 1 else ""
        raise TransportError(
            f"could not remove {path}: something is mounted on {points[0]}{more}, and what is"
            " mounted is not removed; unmount it"
        )


def _check_same(root_fd: int, real_root: str) -> None:
    if not os.path.samestat(os.fstat(root_fd), os.stat(real_root)):
        raise TransportError(f"the directory {real_root} was replaced while it was used")
