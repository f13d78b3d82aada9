"""What the settings want of the containers of runs, and the plan of each."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import RunId
from sortie.transports.local.cgroup_files import plain_path
from sortie.transports.walls import RunImage
from sortie.transports.walls.container import ContainerMount, ContainerPlan
from sortie.transports.walls.enclosure import FoundPath


class ContainerChoice(Struct, frozen=True, kw_only=True):
    """What the containers of runs are to be: as in a ContainerPlan, less what differs by run.

    ``image`` is None where each run tells its own. ``engine`` is the name or path of the program,
    None for the first that is there. ``own`` are
    directories that are made first, and may be written to. ``home`` begins empty.
    """

    image: str | None
    daemon: str
    engine: str | None = None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    home: str = ""
    network: str = "none"
    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None

    def plan(self, run_id: RunId, workspace: str | None, image: RunImage) -> ContainerPlan:
        """Return the plan of a run's container; makes the directories that are its own. Blocks."""
        for path in self.own:
            os.makedirs(path, mode=0o700, exist_ok=True)
        mounted = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        shown = (*self.shown(workspace, mounted), *self.hidden)
        there = {path: os.path.isdir(path) for path in shown if os.path.lexists(path)}
        return self.plan_of(run_id, workspace, image, mounted, there)

    def at_home(self, home: str) -> ContainerChoice:
        """Return this with paths where ``~`` stands for a home directory."""

        def at(paths: tuple[str, ...]) -> tuple[str, ...]:
            begins = ((path, path == "~" or path.startswith("~/")) for path in paths)
            return tuple(home + path[1:] if is_home else path for path, is_home in begins)

        return replace(
            self,
            read=at(self.read),
            write=at(self.write),
            own=at(self.own),
            hidden=at(self.hidden),
            home=at((self.home,))[0],
        )

    def shown(self, workspace: str | None, mounted: str) -> tuple[str, ...]:
        """Return all that is to be seen, where it is there; ``mounted`` is as for a plan."""
        return (*self._read(mounted), *self._written(workspace))

    def _read(self, mounted: str) -> tuple[str, ...]:
        return (*self.read, *mounted_below(self.read, mounted))

    def _written(self, workspace: str | None) -> tuple[str, ...]:
        return (*self.write, *self.own, *(() if workspace is None else (workspace,)))

    def plan_of(
        self,
        run_id: RunId,
        workspace: str | None,
        image: RunImage,
        mounted: str,
        there: Mapping[str, bool],
    ) -> ContainerPlan:
        """Return the plan of a run's container where these paths are ``there``, and whether each is
        a directory; ``mounted`` is the mountinfo of the machine, see proc(5)."""
        mounts = {path: ContainerMount(path=path) for path in self._read(mounted)}
        written = self._written(workspace)
        mounts |= {path: ContainerMount(path=path, writable=True) for path in written}
        hidden = (path for path in self.hidden if path in there and shown_by(path, mounts))
        return ContainerPlan(
            image=image.name,
            environ=image.environ,
            daemon=self.daemon,
            run_id=run_id,
            mounts=tuple(mounts[path] for path in sorted(mounts) if path in there),
            hidden=tuple(FoundPath(path=path, is_directory=there[path]) for path in hidden),
            scratch=("/tmp", *((self.home,) if self.home not in ("", "/") else ())),
            network=self.network,
            memory=self.memory,
            cpus=self.cpus,
            pids=self.pids,
        )


def mounted_below(paths: Collection[str], mounted: str) -> Iterator[str]:
    """Yield the places below paths at which something else is mounted: it comes along with them,
    and stays writable where they are read-only."""
    for line in mounted.splitlines():
        place = plain_path(line.split()[4])
        if any(place.startswith(path.rstrip("/") + "/") for path in paths):
            yield place


def shown_by(path: str, mounts: Collection[str]) -> bool:
    """Tell whether a path would be seen by one of the mounts."""
    return any(path == one or path.startswith(one.rstrip("/") + "/") for one in mounts)
