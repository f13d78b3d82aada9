"""Finds the processes of runs on this machine, and leaves out those beyond reach."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

import psutil

from sortie.model import ProcessIdentity, RunId
from sortie.transports.kinship import Kinship
from sortie.transports.local.census import Census, Seen
from sortie.transports.local.families import Members


class Hunt(Kinship[Seen]):
    """Finds the processes of these runs, look after look; those given up stay in ``staying``."""

    def __init__(self, run_ids: Collection[RunId], roots: Mapping[RunId, ProcessIdentity]) -> None:
        super().__init__(run_ids, roots)
        self._given_up: set[psutil.Process] = set()

    def give_up(self, seen: Seen) -> None:
        """Count a process as out of reach: it may not be signalled, or does not die."""
        self._given_up.add(seen.handle)

    def members(self, census: Census) -> Members:
        """Return who is alive of these runs, and remember them."""
        self.recognise(census.by_pid, os.getpid(), newcomers=census.everyone)
        reachable = (s for s in self.staying.values() if s.handle not in self._given_up)
        return Members(alive={seen.pid: seen for seen in reachable})
