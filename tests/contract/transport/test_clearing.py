"""A directory before a run begins in it: what runs left is ended, and nobody else is."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sortie.model import LOCAL, ProcessesLeft, RunId
from sortie.transports import Transport
from tests.contract.transport.launching import Launch, program_of
from tests.transports.former import ESCAPE, killed_at_last, left_by
from tests.transports.leftovers import is_alive


@contextmanager
def stranger_in(directory: Path) -> Iterator[int]:
    """Give the pid of a process that no run has started."""
    with subprocess.Popen(["sleep", "1000"], cwd=directory) as process:
        try:
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def home(place: str) -> Path:
    """Give a directory that is reached through a link, with rooms, beside one with a like name."""
    for name in ("real/home/room", "real/homestead"):
        Path(place, name).mkdir(parents=True)
    Path(place, "link").symlink_to("real")
    return Path(place, "link", "home")


async def test_a_directory_in_which_nobody_lives_is_clear(transport: Transport, home: Path) -> None:
    """Nobody is looked for elsewhere, and a directory that is not there holds nobody."""
    with stranger_in(home.parent / "homestead"), stranger_in(home.parent):
        assert await transport.clear(str(home), grace=1.0) == 0
        assert await transport.clear(str(home / "none"), grace=1.0) == 0


@pytest.mark.parametrize("room", [".", "room"])
async def test_a_stranger_is_named_and_left_alone(
    transport: Transport, home: Path, room: str
) -> None:
    """A person's shell in the directory or below it is no run's, so nobody may begin there."""
    with stranger_in(home / room) as pid:
        with pytest.raises(ProcessesLeft, match=rf"\b{pid}\b") as caught:
            await transport.clear(str(home), grace=1.0)
        alive = is_alive(pid)

    assert (set(caught.value.pids), alive) == ({pid}, True)


async def test_a_run_that_is_under_way_is_left_alone(
    transport: Transport, launch: Launch, home: Path
) -> None:
    """Also where it visits the directory of another."""
    async with transport.process(launch("sleep", "1000", cwd=str(home))) as process:
        pid = await program_of(process)
        with pytest.raises(ProcessesLeft, match=rf"\b{pid}\b"):
            await transport.clear(str(home), grace=1.0)

        assert is_alive(pid)


@pytest.mark.parametrize(
    "words",
    [
        "fork cleared ignore",
        "fork cleared tree",
        *(pytest.param(weaker, marks=pytest.mark.full) for weaker in ("fork cleared", "fork")),
    ],
)
async def test_what_a_killed_daemons_run_left_is_ended(
    transport: Transport, cookie: RunId, home: Path, words: str
) -> None:
    """Without its parent, its session and its environment it is known all the same."""
    if transport.host != LOCAL:
        pytest.skip("a host has marks of its own")
    left = await left_by(cookie, *ESCAPE, *words.split(), cwd=str(home))
    with killed_at_last(left) as pids:
        before = [is_alive(pid) for pid in pids]

        ended = await transport.clear(str(home), grace=0.2)

        assert before == [True] * len(pids)
        assert ended >= len(pids)  # with what started them, which may be over by itself
        assert not any(is_alive(pid) for pid in pids)


async def test_what_runs_left_is_ended_beside_a_stranger(
    transport: Transport, cookie: RunId, home: Path
) -> None:
    """The one is ended and counted, and the other named."""
    if transport.host != LOCAL:
        pytest.skip("a host has marks of its own")
    left = await left_by(cookie, *ESCAPE, "fork", "cleared", cwd=str(home))
    with killed_at_last(left) as pids, stranger_in(home / "room") as stranger:
        with pytest.raises(ProcessesLeft) as caught:
            await transport.clear(str(home), grace=0.2)
        alive = [is_alive(pid) for pid in (*pids, stranger)]

    assert caught.value.pids == {stranger}
    assert caught.value.ended >= len(pids)
    assert alive == [False] * len(pids) + [True]


async def test_who_lives_in_a_directory_is_told_through_a_link(
    transport: Transport, home: Path, place: str
) -> None:
    """A process has the real path of its directory, whichever way others go there."""
    with stranger_in(home) as one, stranger_in(home / "room") as two:
        by_link = await transport.occupied(str(home))
        by_name = await transport.occupied(f"{place}/real/home")

    assert set(by_link) == set(by_name) == {one, two}
