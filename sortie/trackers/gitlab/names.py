"""Names by which people ask for an issue."""

from __future__ import annotations

import re

from sortie.trackers.gitlab.issues import key_of_id

_NAMED = re.compile(r"(?P<path>[\w.-]+)-(?P<iid>\d{1,18})", re.ASCII)
_REFERENCE = re.compile(r"(?P<path>[\w./-]*)#(?P<iid>\d{1,18})", re.ASCII)

Place = tuple[str, int]
"""A project by number or path, and an issue's number in it."""


def places_of(name: str, *, project: int | None, root: str) -> list[Place]:
    """Return where an issue of this name can be: none, one, or several to try.

    ``project`` is the number of the project that is worked on, None for a group; ``root`` is the
    path of project or group.
    """
    name = name.strip()
    if (key := key_of_id(name)) is not None:
        return [(str(key.project), key.iid)] if project in (None, key.project) else []
    if (found := _REFERENCE.fullmatch(name)) is not None:
        return _of_path(found["path"], int(found["iid"]), project, root)
    if (found := _NAMED.fullmatch(name)) is None:
        return []
    path, iid = found["path"], int(found["iid"])
    if path.isdecimal() and (project is None or int(path) == project):
        return [(path, iid)]
    if project is not None:
        own = root.rpartition("/")[2]
        return [(str(project), iid)] if path.casefold() == own.casefold() else []
    below = path.replace("--", "/")
    return [(f"{root}/{below}", iid)] if _is_path(below) else []


def _of_path(path: str, iid: int, project: int | None, root: str) -> list[Place]:
    if project is not None:
        is_own = path.casefold() in ("", root.casefold())
        return [(str(project), iid)] if is_own else []
    if not path.casefold().startswith(f"{root.casefold()}/") or not _is_path(path):
        return []
    return [(path, iid)]


def _is_path(path: str) -> bool:
    return all(part.strip(".") for part in path.split("/"))
