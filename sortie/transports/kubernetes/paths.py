"""Which pod a path is in.

A workspace ``KEY`` is asked for as ``ROOT/KEY``, and lies at ``ROOT/KEY/KEY`` in its pod: what else
belongs to the issue, as the mirror of its repository, lies beside it, and every pod has its own.
"""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct

_last_used: ContextVar[str | None] = ContextVar("last_used_pod", default=None)


def last_used_pod() -> str | None:
    """Return the workspace whose pod this task, or the one that has started it, used last."""
    return _last_used.get()


def note_used_pod(key: str) -> None:
    """Note that this task uses the pod of a workspace."""
    _last_used.set(key)


_MARKERS = "@incomplete/"


class InPod(Struct, frozen=True, kw_only=True):
    """A directory in the pod of a workspace."""

    key: str
    path: str


def pod_of(root: str, path: str) -> InPod | None:
    """Return where a directory is, None where it is in no pod: the root, or outside."""
    key = path.removeprefix(f"{root}/").partition("/")[0] if path.startswith(f"{root}/") else ""
    return InPod(key=key, path=path) if key and not key.startswith("@") else None


def workspace_of(root: str, path: str) -> InPod | None:
    """Return where the workspace is that is asked for by this path."""
    found = pod_of(root, path)
    if found is not None and path == f"{root}/{found.key}":
        return InPod(key=found.key, path=f"{path}/{found.key}")
    return found


def is_inside(root: str, path: str) -> bool:
    """Tell whether a directory is the root of the workspaces, or below it."""
    return path == root or path.startswith(f"{root}/")


def file_of(root: str, directory: str, name: str) -> InPod | None:
    """Return the directory in a pod that a file is in; the marker of a workspace is in its pod."""
    if directory != root:
        return pod_of(root, directory)
    key = name.removeprefix(_MARKERS)
    if not name.startswith(_MARKERS) or "/" in key or key.startswith("@"):
        return None
    return InPod(key=key, path=f"{root}/{key}")
