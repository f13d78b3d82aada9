"""Hosts on which agents of a game run, and what can be struck there."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import psutil
import trio

from tests.e2e.clock_blows import clock_blows, daemon_clock_blows
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.e2e.walls import (
    Blow,
    Struck,
    Wall,
    container_of,
    containers_about,
    kill,
    remove_container,
    seen,
    strike_daemon,
)
from tests.skewed_clock import MISSING as NO_CLOCK
from tests.skewed_clock import SkewedClock
from tests.transports.containers import variables_of_engines

SHORT_ABSENCE = 3.0  # seconds

MINUTES = 300.0
"""Seconds for which somebody is away in the blows that are played by name only."""


class Supervisors:
    """The files of supervisors in a directory, which say who works there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def blow(self, name: str) -> Blow:
        """Return what kills one of those who keep the streams of the agent."""

        async def strike(struck: Struck) -> None:
            (note,) = self._places(struck)[-1].glob(name)
            os.kill(int(note.read_text().split()[0]), signal.SIGKILL)

        return strike

    def _places(self, struck: Struck) -> list[Path]:
        """Return where supervisors of a run keep their files, the oldest first: a run in a
        container has one more, of what holds the container."""
        found = [
            note
            for note in self.directory.glob("sortie-run.*/run")
            if struck.run_id in note.read_text()
        ]
        return [note.parent for note in sorted(found, key=lambda note: note.stat().st_mtime_ns)]

    @property
    def blows(self) -> dict[str, Blow]:
        """Return the blows at each of them."""
        return {
            "supervisor": self.blow("supervisor"),
            "watchdog": self.blow("watchdog"),
            "keeper of stdout": self.blow("spool1"),
            "keeper of stderr": self.blow("spool2"),
            "link": self.blow("at.*/link"),
            "sender": self.blow("at.*/send1"),
        }

    def left(self) -> list[str]:
        """Return what is left of them."""
        return [f"files of a supervisor: {name}" for name in os.listdir(self.directory)]

    def alive(self) -> list[str]:
        """Return who of them lives."""
        notes = [n for n in self.directory.glob("sortie-run.*/**/*") if n.is_file()]
        words = [(note, note.read_text(errors="replace").split()) for note in notes]
        return [
            f"{note.name} of a supervisor: {found[0]}"
            for note, found in words
            if len(found) == 2 and found[0].isdigit() and _lives(int(found[0]), found[1])
        ]


def _lives(pid: int, born: str) -> bool:
    """Tell whether a process of that number lives that began at that tick."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return state[0] not in "ZX" and state[19] == born
    return False


async def _strike_monitor(struck: Struck) -> None:
    kill(_monitors(await container_of(struck)))


async def _strike_containers_shell(struck: Struck) -> None:
    monitors = _monitors(await container_of(struck))
    kill(child for one in monitors for child in one.children() if child.name() == "sh")


def _monitors(container: str) -> Iterator[psutil.Process]:
    """Yield what of the engine watches over a container."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.name() == "conmon" and container in process.cmdline():
                yield process


def _strike_entry(nth: int) -> Blow:
    """Return what kills one of the processes that have taken an agent into a container."""

    async def strike(struck: Struck) -> None:
        entries = [
            process
            for process, words in _of_run(struck)
            if any("container_entry" in word for word in words)
        ]
        kill(iter([entries[nth]]))

    return strike


def _of_run(struck: Struck) -> Iterator[tuple[psutil.Process, list[str]]]:
    """Yield the processes that have the id of the run, with their words, the oldest first."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("SORTIE_RUN_ID") == struck.run_id:
                yield process, process.cmdline()


async def _strike_holder(struck: Struck) -> None:
    """Kill the program that holds the container of a run."""
    kill(process for process, words in _of_run(struck) if words[:1] == ["sleep"])


CONTAINER_BLOWS: Mapping[str, Blow] = {
    "monitor": _strike_monitor,
    "shell": _strike_containers_shell,
    "removed": remove_container,
    "holder": _strike_holder,
    "first entry": _strike_entry(0),
    "last entry": _strike_entry(-1),
}


@asynccontextmanager
async def host(
    place: Place, reattach: float = 60.0, sandbox: Mapping[str, object] | None = None
) -> AsyncIterator[Wall]:
    """Have agents on a host over SSH, where they outlive their links by so many seconds; in a
    sandbox there, where one is given."""
    contained = sandbox is not None and sandbox["kind"] == "container"
    fleet = Fleet(place)
    try:
        (made,) = fleet.add("one")
        supervisors = Supervisors(made.home / "tmp")
        ours = SkewedClock(place.root / "clock-daemon")
        theirs = SkewedClock(place.root / "clock-host")
        given = {"TMPDIR": supervisors.directory, **theirs.environ}
        given |= variables_of_engines() if contained else {}
        words = " ".join(f"{name}={value}" for name, value in given.items())
        made.options["SetEnv"] = f"{made.options['SetEnv']} {words}"
        made.stop()
        made.start()

        async def cut(_: Struck) -> None:
            made.kill_links()

        async def stay_away(seconds: float, _: Struck) -> None:
            made.crash()
            await trio.sleep(seconds)
            made.start()

        async def freeze(_: Struck) -> None:
            made.freeze()
            await trio.sleep(SHORT_ABSENCE)
            made.thaw()

        async def left() -> list[str]:
            # What a network or a container of a run that was lost has left goes after a week.
            found = [
                each
                for each in supervisors.left()
                if "sortie-net." not in each and "sortie-container." not in each
            ]
            return [*found, *(await containers_about(place) if contained else ())]

        worker = {"ssh_reattach": True, "ssh_reattach_ms": round(reattach * 1000)}
        yield Wall(
            blocks=fleet.blocks(worker=worker)
            | ({} if sandbox is None else {"sandbox": {**sandbox, **seen(place)}}),
            blows={
                "daemon": strike_daemon,
                **supervisors.blows,
                **(CONTAINER_BLOWS if contained else {}),
                "links": cut,
                "host away": partial(stay_away, SHORT_ABSENCE),
                "host silent": freeze,
                **({} if NO_CLOCK else daemon_clock_blows(ours.set)),
                **({} if NO_CLOCK else clock_blows("host", theirs.set)),
            },
            long_blows={"host away for minutes": partial(stay_away, MINUTES)},
            environ=ours.environ,
            left=left,
        )
    finally:
        fleet.close()
