"""A place for daemons, and a way to start them in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest
import trio

from tests.e2e.daemon import Daemon, run_command
from tests.e2e.loaded import LoadedSortie
from tests.e2e.place import Place
from tests.e2e.remote import Fleet
from tests.e2e.ways_of_ending import WITHOUT_CGROUPS
from tests.ports import free_port


class Start(Protocol):
    """Makes a daemon, to be entered, with further options and changes to its environment."""

    def __call__(self, *options: str, **environ: str | None) -> Daemon: ...


@pytest.fixture(scope="session")
def loaded() -> Iterator[LoadedSortie]:
    """What ``sortie`` is forked from, which saves each start the loading of a thousand modules."""
    program = LoadedSortie()
    yield program
    program.close()


@pytest.fixture
def place(tmp_path: Path, loaded: LoadedSortie, request: pytest.FixtureRequest) -> Iterator[Place]:
    """An empty place with a workflow; no process of a run may outlive the test.

    The first start of each process of tests is that of the installed program, and with --full all
    are.
    """
    here = Place(tmp_path)
    here.installed_starts, loaded.installed_starts = loaded.installed_starts, 0
    here.loaded = None if request.config.getoption("--full") else loaded
    yield here
    here.require_no_process()


@pytest.fixture
def start(place: Place, nursery: trio.Nursery, request: pytest.FixtureRequest) -> Start:
    """Start daemons in the place."""
    is_portless = request.node.get_closest_marker("portless") is not None
    has_port = not is_portless or request.config.getoption("--full")

    def make(*options: str, **environ: str | None) -> Daemon:
        port = free_port() if has_port else 0
        daemon = Daemon(place, nursery, run_command(*options, port=port), port)
        daemon.environ = environ
        return daemon

    return make


@pytest.fixture
def start_without_cgroups(place: Place, nursery: trio.Nursery) -> Start:
    """Start daemons that end what an earlier life has left by searching, with a grace time; what is
    in a cgroup is killed at once."""

    def make(*options: str, **environ: str | None) -> Daemon:
        port = free_port()
        command = (*WITHOUT_CGROUPS, *run_command(*options, port=port))
        daemon = Daemon(place, nursery, command, port)
        daemon.environ = environ
        return daemon

    return make


@pytest.fixture
def fleet(place: Place) -> Iterator[Fleet]:
    """Remote hosts for the place's daemons, none at first; all are gone at the end."""
    hosts = Fleet(place)
    yield hosts
    hosts.close()
