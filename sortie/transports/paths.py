"""Names and paths that lead nowhere else: what every host is asked for is checked here first."""

from __future__ import annotations

import os

from sortie.model import TransportError


def parts_of(name: str) -> list[str]:
    """Split a relative name into its parts. Raises TransportError for one that could escape."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise TransportError(f"{name!r} is no name of something below a directory")
    return parts


def single(name: str) -> str:
    """Return a name that has one part. Raises TransportError."""
    if len(parts_of(name)) != 1:
        raise TransportError(f"{name!r} is no name of something directly in a directory")
    return name


def plain(path: str) -> str:
    """Return an absolute path without the trailing slashes that would make a link be followed."""
    if not os.path.isabs(path):
        raise TransportError(f"{path!r} is not an absolute path")
    while path.endswith(("/", "/.")) and path.strip("/"):
        path = path[: path.rindex("/")]
    return path or "/"
