"""Who outlived a process, told by the children of this one alone."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from sortie.resources.prctl import is_subreaper
from sortie.transports import Command
from sortie.transports.local import become_subreaper, plain_fork_server
from sortie.transports.local import observer as own_children_module
from sortie.transports.local.observer import own_children
from sortie.transports.local.spawn import spawn
from tests.transports.former import ESCAPE, killed_at_last, without_adoption

_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE_PARENT = 0x8000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")


@pytest.fixture(autouse=True)
def adopting() -> None:
    assert become_subreaper()


def pids_left(*words: str) -> list[int]:
    """Have a program exit that leaves processes behind; return who they are."""
    said = subprocess.run([*ESCAPE, *words], stdout=subprocess.PIPE, check=False).stdout
    return [int(pid) for pid in said.split(b"\n")[0].split()]


def kill(pids: list[int]) -> None:
    with killed_at_last(pids):
        pass
    for pid in pids:
        os.waitpid(pid, 0)


def children() -> frozenset[int]:
    found = own_children()
    assert found is not None
    return found


@pytest.mark.parametrize("words", ["exit", "exit fork", "exit cleared away fork", "exit tree fork"])
def test_who_outlives_its_parent_is_there_when_the_parent_has_been_waited_for(words: str) -> None:
    """However it left, and at the first look: whoever lives is a child of ours or below one."""
    before = children()

    for _ in range(5):
        left = pids_left(*words.split())
        after = children() - before
        kill(left)

        assert len(after) == 1
        assert after <= set(left)
    assert children() == before


@pytest.mark.skipif(platform.machine() not in _CLONE, reason="no number known of clone(2)")
async def test_a_child_that_a_command_made_ours_is_there(tmp_path: Path) -> None:
    """Nobody adopts it: it has the parent that the command has, this process."""
    told = tmp_path / "pid"
    program = f"""
import ctypes, os, pathlib
if ctypes.CDLL(None).syscall({_CLONE[platform.machine()]}, {_CLONE_PARENT} | 17, 0, 0, 0, 0) == 0:
    pathlib.Path({str(told)!r}).write_text(str(os.getpid()))
    os.execvp("sleep", ["sleep", "1000"])
"""
    before = children()
    argv = (sys.executable, "-I", "-c", program)

    server = plain_fork_server()
    root, pipes = await spawn(Command(argv=argv, cwd="/", env={}), server=server)
    await root.exited()
    while not told.exists() or not told.read_text():
        await trio.sleep(0.01)
    found = children()
    kill([int(told.read_text())])
    root.reap()
    pipes.close()
    assert server is not None
    assert server.pid is not None

    assert found - before == {root.pid, int(told.read_text()), server.pid}
    server.close()


def test_a_zombie_is_a_child_until_it_is_waited_for() -> None:
    """So nobody can vanish from a listing but by our own hand."""
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert child.pid in children()
    assert child.pid not in children()


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[frozenset[bytes]]:
    """Give a list of what the kernel shall show, one listing after the other."""
    shown: list[frozenset[bytes]] = []
    monkeypatch.setattr(own_children_module, "_listing", lambda: shown.pop(0))
    return shown


def test_a_listing_in_which_somebody_was_reaped_is_not_believed(
    listings: list[frozenset[bytes]],
) -> None:
    """The kernel may have passed over somebody when the one it stood at was gone."""
    listings += [frozenset({b"1", b"3"}), frozenset({b"2", b"3"}), frozenset({b"2", b"3", b"4"})]

    assert own_children() == frozenset({2, 3})


def test_who_reaps_all_the_time_leaves_it_unknown(listings: list[frozenset[bytes]]) -> None:
    """An answer comes in bounded time."""
    listings += [frozenset({b"%d" % number}) for number in range(20)]

    assert own_children() is None


def test_where_there_is_no_listing_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    """As on other systems, and on kernels without this file."""
    monkeypatch.setattr(own_children_module, "_TASKS", str(tmp_path))

    assert own_children() is None


def test_who_does_not_adopt_knows_it() -> None:
    """Without adoption the children prove nothing."""
    assert is_subreaper()
    with without_adoption():
        assert not is_subreaper()
