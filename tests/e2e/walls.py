"""Walls of this machine behind which agents of a game run, and what can be struck there."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import psutil
import trio

from tests.e2e.daemon import Daemon
from tests.e2e.place import Place
from tests.transports.containers import IMAGE, engine_environ, seen_by_tests

Blocks = dict[str, Mapping[str, object] | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """Whom a blow is for: an agent that works, of which run, and its daemon."""

    daemon: Daemon
    issue: str
    run_id: str


Blow = Callable[[Struck], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Wall:
    """Where agents run: the blocks of the workflow, what the daemon is given, the blows, and what
    tells of things that must not be there in the end.

    ``long_blows`` are played by name only."""

    blocks: Blocks
    blows: Mapping[str, Blow]
    long_blows: Mapping[str, Blow] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    left: Callable[[], Awaitable[list[str]]]


def kill(processes: Iterator[psutil.Process]) -> None:
    """Kill processes; there must be some."""
    killed = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
            killed += 1
    assert killed, "there is nobody to kill"


async def strike_daemon(struck: Struck) -> None:
    """Kill the daemon."""
    struck.daemon.signal(signal.SIGKILL)
    await struck.daemon.exit_code()


async def strike_child(name: str, struck: Struck, *, nth: int | None = None) -> None:
    """Kill what descends from the daemon and has this name; of the agent, or one of these."""
    tree = psutil.Process(struck.daemon.process.pid).children(recursive=True)
    found = [process for process in tree if process.name() == name]
    kill(iter(found if nth is None else found[nth : nth + 1]))


async def nothing_left() -> list[str]:
    """Nothing can be left but processes."""
    return []


FORK_SERVER = partial(strike_child, "sortie-fork")
INIT = partial(strike_child, "sortie-init")


@asynccontextmanager
async def bubblewrap(place: Place) -> AsyncIterator[Wall]:
    """Have agents behind bubblewrap."""
    yield Wall(
        blocks={"sandbox": {"kind": "bubblewrap", **seen(place)}},
        blows={
            "daemon": strike_daemon,
            "fork server": FORK_SERVER,
            "init": INIT,
            "bwrap": partial(strike_child, "bwrap", nth=0),
            "bwrap inside": partial(strike_child, "bwrap", nth=1),
        },
        left=nothing_left,
    )


def seen(place: Place) -> dict[str, object]:
    """Return what witnesses see and write behind a wall of this machine."""
    written = [place.agents_log, place.root / "witness.jsonl"]
    for path in written:
        path.touch()
    written += [place.root / "locks", place.issues]
    return {"read": seen_by_tests(), "write": [str(path) for path in written]}


@asynccontextmanager
async def container(place: Place) -> AsyncIterator[Wall]:
    """Have agents in containers of podman without a network."""

    async def left() -> list[str]:
        return await containers_about(place, "--all")

    yield Wall(
        blocks={
            "sandbox": {
                "kind": "container",
                "image": IMAGE,
                "engine": "podman",
                "network": "none",
                **seen(place),
            }
        },
        environ=engine_environ(),
        blows={
            "daemon": strike_daemon,
            "fork server": FORK_SERVER,
            "init": INIT,
            "monitor": partial(strike_child, "conmon"),
            "shell": _strike_containers_shell,
            "removed": remove_container,
        },
        left=left,
    )


async def _strike_containers_shell(struck: Struck) -> None:
    tree = psutil.Process(struck.daemon.process.pid).children(recursive=True)
    monitors = [process.pid for process in tree if process.name() == "conmon"]
    kill(p for p in tree if p.name() == "sh" and p.ppid() in monitors)


async def container_of(struck: Struck) -> str:
    """Return the name of the container of the run that is struck."""
    line = await struck.daemon.line("container.started", run=struck.run_id)
    return str(line["container"])


async def remove_container(struck: Struck) -> None:
    """Have the engine remove the container of a run."""
    await podman("rm", "--force", "--time", "0", await container_of(struck))


async def containers_about(place: Place, *which: str) -> list[str]:
    """Return the containers that run, or ``--all``, and show something of a place."""
    said = await podman("ps", *which, "--format", "{{.Names}} {{.Mounts}}")
    return [line for line in said.splitlines() if str(place.root) in line]


async def podman(*words: str) -> str:
    """Ask the engine of the tests; return what it says."""
    done = await trio.run_process(
        ["podman", *words], env=dict(engine_environ()), capture_stdout=True, capture_stderr=True
    )
    return done.stdout.decode()
