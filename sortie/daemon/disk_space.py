"""How much room is left on the disks that a daemon writes to.

Rule 1: a disk that hangs delays no answer: each answer is what was known last.
Rule 2: an answer starts the next look, one look at a time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import trio

from sortie.config.settings import Settings
from sortie.resources import Shortage, run_in_thread

LOOK_LIMIT = 10.0
"""Seconds after which what was known of a disk that does not answer is forgotten."""


def places_of(settings: Settings) -> Mapping[str, str]:
    """Return the directories on this machine that fill, by what they hold."""
    found = {"database": os.path.dirname(os.path.abspath(settings.db_path))}
    if not settings.worker.hosts:
        found["workspaces"] = settings.workspace.root
    return found


def room_at(path: str) -> tuple[float, float]:
    """Return the free bytes for this user, and all bytes, where a path is or would be made.

    Raises OSError.
    """
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return float(found.f_bavail * found.f_frsize), float(found.f_blocks * found.f_frsize)


class DiskSpace:
    """Knows the room at some places; ``nursery`` is where looks are made."""

    def __init__(self, nursery: trio.Nursery, places: Mapping[str, str]) -> None:
        self._nursery = nursery
        self._places = places
        self._known: dict[str, tuple[float, float]] = {}
        self._looking = False
        self._threads = {place: trio.CapacityLimiter(1) for place in places}

    def known(self) -> Mapping[str, tuple[float, float]]:
        """Return what is known, and have it looked at anew."""
        if not self._looking:
            self._looking = True
            self._nursery.start_soon(self.look)
        return dict(self._known)

    async def look(self) -> None:
        """Look at each place; what cannot be known is forgotten."""
        try:
            async with trio.open_nursery() as looks:
                for place, path in self._places.items():
                    looks.start_soon(self._look_at, place, path)
        finally:
            self._looking = False

    async def _look_at(self, place: str, path: str) -> None:
        with trio.move_on_after(LOOK_LIMIT) as limit:
            try:
                self._known[place] = await run_in_thread(
                    room_at, path, limiter=self._threads[place], abandon_on_cancel=True
                )
            except (OSError, Shortage):
                self._known.pop(place, None)
        if limit.cancelled_caught:
            self._known.pop(place, None)
