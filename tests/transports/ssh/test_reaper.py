"""Ending what an earlier life left on a host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import trio

from sortie.model import ProcessesLeft, RunId, TransportError
from sortie.resources.process_identity import identity_of
from sortie.transports.remote.transport import ShellTransport
from tests.transports.leftovers import holders, is_alive
from tests.transports.ssh.pipes import Logins

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the host's /proc is looked at")


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[ShellTransport]:
    """Give a host; nothing of its logins may be left."""
    logins = Logins(tmp_path)
    yield ShellTransport("h", logins.connections)
    await logins.quiet()


@pytest.fixture
def run_id() -> Iterator[RunId]:
    """Give a run id, and check that nothing of the run is left."""
    cookie = RunId(str(uuid.uuid4()))
    yield cookie
    assert holders(cookie) == []


@contextmanager
def left_behind(script: str, **env: str) -> Iterator[int]:
    """Run a script as something that an earlier life has left; it says when it is ready."""
    path = os.environ["PATH"]
    with subprocess.Popen(
        ["sh", "-c", script],
        env={"PATH": path, **env},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield process.pid
        finally:
            process.kill()


async def test_a_stopped_and_a_stubborn_process_are_ended(
    host: ShellTransport, run_id: RunId, tmp_path: Path
) -> None:
    """One takes SIGTERM when it is continued, the other SIGKILL after the grace time."""
    stopped = (
        f"trap 'echo bye >{tmp_path}/said; exit' TERM;"
        " echo ready; kill -STOP $$; while :; do sleep .02; done"
    )
    stubborn = "trap '' TERM; echo ready; while :; do sleep .02; done"

    with (
        left_behind(stopped, SORTIE_RUN_ID=run_id) as one,
        left_behind(stubborn, SORTIE_RUN_ID=run_id) as two,
    ):
        while psutil.Process(one).status() != psutil.STATUS_STOPPED:
            await trio.sleep(0.005)
        await host.sweep([run_id], grace=0.5)

        assert not is_alive(one)
        assert not is_alive(two)
    assert (tmp_path / "said").read_text() == "bye\n"


@pytest.mark.parametrize("name", ["a\nb", "a) S 1\n2 (b", ") Z 1 1 1"])
async def test_a_process_of_any_name_is_ended(
    host: ShellTransport, run_id: RunId, name: str
) -> None:
    """What a process calls itself stands in the kernel's table; nothing hides behind it."""
    script = 'printf %s "$NAME" >/proc/$$/comm; echo ready; kill -s STOP $$'

    with left_behind(script, SORTIE_RUN_ID=run_id, NAME=name) as pid:
        for _ in range(20):  # so that it is not among the youngest of the host
            subprocess.run(["true"], check=True)
        ended = await host.sweep([run_id], grace=0)
        alive = is_alive(pid)

    assert (ended, alive) == (1, False)


async def test_who_names_a_run_in_another_variable_is_a_stranger(
    host: ShellTransport, run_id: RunId
) -> None:
    """Also while the youngest processes of the host are looked at for those of the run."""
    env = {"PATH": os.environ["PATH"], "OLD_SORTIE_RUN_ID": run_id}
    strangers = []

    async def appear() -> None:
        while True:
            strangers.append(subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True))
            await trio.sleep(0.01)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(appear)
        ended = [await host.sweep([run_id], grace=0) for _ in range(3)]
        nursery.cancel_scope.cancel()
    states = {psutil.Process(stranger.pid).status() for stranger in strangers}
    for stranger in strangers:
        stranger.kill()
        stranger.wait()

    assert ended == [0, 0, 0]
    assert not states & {psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED}


async def test_what_forks_and_exits_all_the_time_is_ended(
    host: ShellTransport, run_id: RunId, tmp_path: Path
) -> None:
    """It stands in no list of processes, and is met among the youngest."""
    flag = tmp_path / "flag"
    flag.touch()
    storm = (
        "import os, sys, time\n"
        "while os.path.exists(sys.argv[1]):\n"
        "    if os.fork():\n"
        "        os._exit(0)\n"
        "    os.setsid()\n"
        "    time.sleep(0.002)\n"
    )
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    subprocess.run([sys.executable, "-c", storm, str(flag)], env=env, check=True)

    try:
        ended = await host.sweep([run_id], grace=0)
        left = [pid for _ in range(20) for pid in holders(run_id)]
    finally:
        flag.unlink()

    assert ended >= 1
    assert left == []


async def test_a_recorded_root_that_became_a_stranger_is_left_alone(
    host: ShellTransport, run_id: RunId
) -> None:
    """The pid alone is not enough, nor is it with the cookie of another run."""
    other = RunId(str(uuid.uuid4()))
    with left_behind("echo ready; exec sleep 1000", SORTIE_RUN_ID=other) as pid:
        ended = await host.sweep([run_id], grace=0, roots={run_id: identity_of(pid)})

        assert is_alive(pid)
    assert ended == 0


async def test_who_cannot_be_signalled_is_named_and_the_others_are_ended(
    run_id: RunId, tmp_path: Path
) -> None:
    """A process of another user stays, with its run and its pid in the error."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None:
        pytest.skip("needs root and setpriv to log in without root's rights")
    tmp_path.chmod(0o755)
    mine, others = RunId(str(uuid.uuid4())), run_id
    # Without the right to signal what is not its own, but with that to look at it.
    login = (setpriv, "--bounding-set=-kill", "--reuid=0", "--inh-caps=-kill", "sh")
    host = ShellTransport("h", Logins(tmp_path, login).connections)

    with (
        left_behind("echo ready; exec sleep 1000", SORTIE_RUN_ID=mine) as one,
        left_behind(
            f"{setpriv} --reuid=12345 --clear-groups sh -c 'echo ready; exec sleep 1000'",
            SORTIE_RUN_ID=others,
        ) as two,
    ):
        with pytest.raises(ProcessesLeft) as caught:
            await host.sweep([mine, others], grace=0.1)

        assert not is_alive(one)
        assert not is_alive(two)  # the shell that started it is ours
    assert caught.value.run_ids == {others}
    assert len(caught.value.pids) == 1
    assert caught.value.ended == 2
    for pid in caught.value.pids:
        os.kill(pid, 9)
        while is_alive(pid):
            await trio.sleep(0.005)


@pytest.fixture
def blind_host(tmp_path: Path) -> ShellTransport:
    """Give a host without /proc."""
    unshare = shutil.which("unshare")
    script = 'mount -t tmpfs none /proc && exec sh "$@"'
    tried = unshare and subprocess.run([unshare, "-m", "mount", "-t", "tmpfs", "none", "/proc"])
    if not tried or tried.returncode:
        pytest.skip("needs a mount namespace without /proc")
    login = (str(unshare), "-m", "sh", "-c", script, "sh")
    return ShellTransport("h", Logins(tmp_path, login).connections)


async def test_a_host_that_shows_no_processes_says_so(
    blind_host: ShellTransport, run_id: RunId
) -> None:
    """What cannot be looked for is not said to be gone."""
    with pytest.raises(TransportError, match="no /proc"):
        await blind_host.sweep([run_id], grace=0)
    with pytest.raises(TransportError, match="no /proc"):
        await blind_host.occupied("/")


async def test_a_host_that_shows_no_processes_lets_runs_begin(blind_host: ShellTransport) -> None:
    """Nobody can be seen in a workspace there, or none would ever be used twice."""
    assert await blind_host.clear("/", grace=0) == 0


async def test_a_grace_time_may_end_at_any_moment(host: ShellTransport) -> None:
    """Also in the middle of a look, which is then not taken for the next one."""
    for step in range(15):
        run_id = RunId(str(uuid.uuid4()))
        script = "trap '' TERM; echo ready; while :; do sleep 1000; done"
        with left_behind(script, SORTIE_RUN_ID=run_id) as pid:
            assert await host.sweep([run_id], grace=0.01 + step * 0.004) >= 1
            assert not is_alive(pid)
