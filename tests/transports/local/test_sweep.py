"""Sweeps, with real processes that a daemon left when it was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from sortie.model import RunId
from sortie.transports import Command, Exit
from sortie.transports.local import LocalTransport, become_subreaper
from tests.transports.former import ESCAPE, PROJECT, left_by
from tests.transports.leftovers import foreign_children, holders, is_alive

QUIET = "</dev/null >/dev/null 2>&1"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="adoption of orphans and /proc are Linux's"
)


@pytest.fixture
def transport() -> LocalTransport:
    assert become_subreaper()
    return LocalTransport(os.environ["PATH"])


@pytest.fixture
def runs() -> Iterator[tuple[RunId, RunId]]:
    """Give two run ids, and check that nothing of the runs and no zombie is left."""
    cookies = RunId(str(uuid.uuid4())), RunId(str(uuid.uuid4()))
    yield cookies
    left = foreign_children()
    for pid, _ in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert left == []
    assert [holders(cookie) for cookie in cookies] == [[], []]


@contextmanager
def started(*argv: str, user: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process without a cookie in a session of its own, which is killed in the end."""
    env = {"PATH": os.environ["PATH"]}
    with subprocess.Popen(
        argv, env=env, stdout=subprocess.PIPE, user=user, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "count"),
    [("", 2), ("fork", 2), ("ignore", 2), ("fork ignore tree", 4), ("fork away", 2)],
)
async def test_what_an_earlier_daemon_left_is_swept(
    transport: LocalTransport, runs: tuple[RunId, RunId], words: str, count: int
) -> None:
    """Sessions of its own, a parent that is gone, a deaf ear: nothing hides, and all count."""
    pids = await left_by(runs[0], *ESCAPE, *words.split())
    before = [is_alive(pid) for pid in pids]

    ended = await transport.sweep([runs[0]], grace=0.1)

    assert before == [True] * (count - 1)
    assert ended == count  # those and the root that was our grandchild
    assert not any(is_alive(pid) for pid in pids)


async def test_a_sweep_never_ends_its_own_process_or_an_ancestor(
    transport: LocalTransport, runs: tuple[RunId, RunId], tmp_path: Path
) -> None:
    """A daemon that runs inside the very run that it sweeps stays, and so does its session."""
    script = (
        "import os, trio\n"
        "from functools import partial\n"
        "from sortie.transports.local import LocalTransport\n"
        "from sortie.resources.process_identity import identity_of\n"
        "run = os.environ['SORTIE_RUN_ID']\n"
        "sweep = LocalTransport().sweep\n"
        "for pid in (os.getpid(), os.getppid()):\n"
        "    roots = {run: identity_of(pid)}\n"
        "    print(trio.run(partial(sweep, [run], grace=0, roots=roots)), flush=True)\n"
    )
    around = f'env -u SORTIE_RUN_ID sleep 1000 {QUIET} & "$0" -c "$1"; kill -0 $! && echo alive'
    inner = Command(
        argv=("sh", "-c", around, sys.executable, script),
        cwd=str(PROJECT),
        env={**os.environ, "SORTIE_RUN_ID": runs[0]},
    )

    async with transport.process(inner) as process:
        read = b"".join([chunk async for _, chunk in process.output()])
        exit_ = await process.wait()

    assert (read, exit_) == (b"0\n0\nalive\n", Exit(status=0))


async def test_who_may_not_be_signalled_is_named_with_its_run(
    runs: tuple[RunId, RunId],
) -> None:
    """What runs as another user stays, and everybody else is ended all the same."""
    if os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    script = (
        "import os, sys, trio\n"
        "from functools import partial\n"
        "from sortie.model import ProcessesLeft\n"
        "from sortie.transports.local import LocalTransport\n"
        "from sortie.resources.process_identity import identity_of\n"
        "roots = {run: identity_of(int(pid)) for run, pid in zip('ab', sys.argv[1:])}\n"
        "os.setuid(65534)\n"
        "try:\n"
        "    trio.run(partial(LocalTransport().sweep, [], grace=1.0, roots=roots))\n"
        "except ProcessesLeft as left:\n"
        "    print(*left.pids, *left.run_ids, left.ended)\n"
    )
    with started("sleep", "1000") as roots_own, started("sleep", "1000", user=65534) as nobodys:
        argv = [sys.executable, "-c", script, str(roots_own.pid), str(nobodys.pid)]
        done = await trio.run_process(argv, cwd=PROJECT, capture_stdout=True)
        alive = is_alive(roots_own.pid)

    assert done.stdout.decode().split() == [str(roots_own.pid), "a", "1"]
    assert (alive, nobodys.returncode) == (True, -signal.SIGTERM)
