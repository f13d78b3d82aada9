"""Settings that name what cannot be used on this machine, found without changing anything."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator

from sortie.config.settings import Settings
from sortie.model import StoreError
from sortie.store.filesystems import refuse_network


def unusable_settings(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield key and sentence for each setting that names what cannot be used on this machine."""
    found = {"db_path": _database(settings.db_path, is_file=settings.store.url is None)}
    if not settings.worker.hosts:
        found["workspace.root"] = _root(settings.workspace.root)
    found["agent.command"] = _command(settings.agent.command)
    for key, flaw in found.items():
        if flaw is not None:
            yield key, flaw


def _database(path: str, *, is_file: bool) -> str | None:
    above = os.path.dirname(path) or "."
    if os.path.isdir(path):
        return f"{path} is a directory; name a file"
    if os.path.lexists(path) and not os.path.isfile(path):
        return f"{path} is not a regular file; name another"
    if not os.path.isdir(above):
        return f"the directory {above} is not there; make it, or name another file"
    if not os.access(path if os.path.exists(path) else above, os.W_OK):
        return f"{path} cannot be written; make it writable, or name another file"
    try:
        if is_file:
            refuse_network(os.path.abspath(path))
    except StoreError as exc:
        return str(exc)
    return None


def _root(path: str) -> str | None:
    if os.path.islink(path):
        return f"{path} is a link; name the directory itself"
    existing = path
    while not os.path.lexists(existing) and os.path.dirname(existing) != existing:
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        return f"{existing} is not a directory; remove it, or name another"
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"{existing} cannot be written; make it writable, or name another directory"
    if existing == path and os.stat(path).st_uid != os.geteuid():
        return f"{path} belongs to another user; name a directory of your own"
    return None


def _command(command: str | tuple[str, ...] | None) -> str | None:
    if not isinstance(command, str) or shutil.which(command) is not None:
        return None
    try:
        shlex.split(command)
    except ValueError as exc:
        return f"{command!r} cannot be split into words: {exc}; close the quote, or write a list"
    return None
