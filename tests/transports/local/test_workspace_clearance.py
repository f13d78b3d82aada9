"""Who is known by the mark alone, on this machine, when a new life of the daemon looks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from sortie.model import ProcessesLeft, RunId
from sortie.transports import Command
from sortie.transports.local import LocalTransport, become_subreaper, carry, mark_of_database
from sortie.transports.local.mark import mark_of
from tests.transports.former import ESCAPE, PROJECT, killed_at_last, left_by, without_adoption
from tests.transports.leftovers import holders, is_alive

# Another process that runs these tests at the same time would be taken for an earlier life.
OURS = f"/ours-{os.getpid()}.db"
MARK, ANOTHER = mark_of_database(OURS), mark_of_database("/another.db")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the mark is Linux's")


@pytest.fixture
def transport() -> Iterator[LocalTransport]:
    """Give the transport of a daemon that carries a mark, as this process does meanwhile."""
    assert become_subreaper()
    before = resource.getrlimit(resource.RLIMIT_RSS)
    assert carry(MARK)
    yield LocalTransport(os.environ["PATH"], mark=MARK)
    resource.setrlimit(resource.RLIMIT_RSS, before)


@pytest.fixture
def run() -> Iterator[RunId]:
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


def test_marks_tell_databases_apart() -> None:
    """One database has one mark, and no system has such a limit by itself."""
    assert MARK != ANOTHER
    assert mark_of_database(OURS) == MARK
    assert mark_of(1) is None


def test_a_mark_is_inherited_whatever_becomes_of_the_environment(
    transport: LocalTransport,
) -> None:
    """A child has it through exec, a new session and another user."""
    shell = ("sh", "-c", "echo; read x")
    for argv, user in (
        (shell, None),
        (("env", "-i", "setsid", "-w", *shell), None),
        (shell, 65534 if os.geteuid() == 0 else None),
    ):
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user
        ) as process:
            assert process.stdout is not None
            process.stdout.readline()
            mark = mark_of(process.pid)
            process.communicate()

        assert mark == MARK


def test_the_mark_of_another_users_process_can_be_read(
    transport: LocalTransport,
) -> None:
    """A process that has become another user's is known all the same, if not where it lives."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    script = (
        "import os, sys\n"
        "from sortie.transports.local.mark import mark_of\n"
        "os.setuid(65534)\n"
        "print(mark_of(int(sys.argv[1])))\n"
    )
    with subprocess.Popen(["sleep", "1000"]) as process:
        argv = [sys.executable, "-c", script, str(process.pid)]
        done = subprocess.run(argv, cwd=PROJECT, capture_output=True, text=True, check=False)
        process.kill()

    assert (done.stdout, done.stderr) == (f"{MARK}\n", "")


@pytest.mark.parametrize("words", ["fork cleared", "fork cleared ignore tree"])
async def test_what_an_earlier_life_left_is_known_by_its_mark(
    transport: LocalTransport, run: RunId, tmp_path: Path, words: str
) -> None:
    """Neither parent, session, environment nor record leads to it, and it is ended."""
    with without_adoption():
        left = await left_by(run, *ESCAPE, *words.split(), cwd=str(tmp_path), mark=MARK)
    with killed_at_last(left) as pids:
        ended = await transport.clear(str(tmp_path), grace=0.2)

        assert ended == len(pids) + 1  # the command that told of them lives there, too
        assert not any(is_alive(pid) for pid in pids)


@pytest.mark.parametrize("mark", [ANOTHER, None])
async def test_who_carries_another_mark_is_a_stranger(
    transport: LocalTransport, run: RunId, tmp_path: Path, mark: int | None
) -> None:
    """Another daemon's process, and one of nobody's, are named and live on."""
    with without_adoption():
        left = await left_by(
            run, *ESCAPE, "fork", "cleared", cwd=str(tmp_path), mark=mark or 1 << 40
        )
    with killed_at_last(left) as pids:
        with pytest.raises(ProcessesLeft, match="python") as caught:
            await transport.clear(str(tmp_path), grace=0.2)

        assert caught.value.pids >= set(pids)
        assert all(is_alive(pid) for pid in pids)
    await transport.sweep([run], grace=0.2)


async def test_a_sweep_ends_what_carries_the_mark_of_an_earlier_life(
    transport: LocalTransport, run: RunId, tmp_path: Path
) -> None:
    """Wherever it lives, without a run on record; what this life has started is spared."""
    with without_adoption():
        left = await left_by(run, *ESCAPE, "fork", "cleared", "away", mark=MARK)
    ours = Command(argv=("sleep", "1000"), cwd=str(tmp_path), env=dict(os.environ))
    with killed_at_last(left) as pids:
        async with transport.process(ours) as process:
            ended = await transport.sweep([], grace=0.2)
            alive = is_alive(process.identity.pid)

        assert ended >= len(pids)
        assert alive
        assert not any(is_alive(pid) for pid in pids)
