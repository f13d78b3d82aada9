"""Cgroups of commands: who is in them, and what becomes of them."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from sortie.config.settings import Isolation
from sortie.model import RunId
from sortie.transports import Command, Exit
from sortie.transports.local import (
    LocalTransport,
    RunGroups,
    become_subreaper,
    plain_fork_server,
)
from sortie.transports.local import cgroup_files as files_module
from sortie.transports.local.cgroup_files import Hierarchy, cgroup_of, members, remove
from sortie.transports.local.files import in_thread
from sortie.transports.local.isolation import establish_isolation
from tests.run_ids import own_run_id
from tests.transports.endings import requires_cgroups
from tests.transports.former import (
    PROGRAMS,
    PROJECT,
    daemon_with,
    killed_at_last,
    left_by,
    without_adoption,
)
from tests.transports.leftovers import foreign_children, is_alive

HIDDEN = (sys.executable, str(PROGRAMS / "hidden.py"))
QUIET = "</dev/null >/dev/null 2>&1"


@pytest.fixture
def groups() -> Iterator[RunGroups]:
    """Give the cgroups of a daemon that no other test has; nothing of them is left."""
    assert become_subreaper()
    groups = RunGroups.open(f"sortie-test-{uuid.uuid4().hex[:8]}")
    assert groups is not None
    yield groups
    groups.close()
    assert not os.path.exists(groups.directory)


@pytest.fixture
async def transport(groups: RunGroups) -> AsyncIterator[LocalTransport]:
    server = plain_fork_server()
    assert server is not None
    yield LocalTransport(os.environ["PATH"], groups=groups, server=server)
    server.close()


def command(run_id: str, *argv: str, grace: float = 1.0) -> Command:
    env = {"PATH": os.environ["PATH"], "SORTIE_RUN_ID": run_id}
    return Command(argv=argv, cwd="/", env=env, grace=grace)


async def until_in(groups: RunGroups, pid: int) -> str:
    """Wait until a process is in a cgroup of a daemon; return that cgroup."""
    name = os.path.basename(groups.directory)
    with trio.fail_after(60):
        while f"/{name}/" not in (found := cgroup_of(pid) or ""):
            await trio.sleep(0.005)
    return found


@requires_cgroups
async def test_all_that_a_command_starts_is_in_its_cgroup(
    transport: LocalTransport, groups: RunGroups
) -> None:
    """From its first instruction on; two commands of one run have two cgroups, which go with
    them."""
    script = f"sleep 1000 {QUIET} & setsid sleep 1000 {QUIET} & echo $!; exec sleep 1000"

    async with (
        transport.process(command("one", "sh", "-c", script)) as one,
        transport.process(command("one", "sleep", "1000")) as two,
    ):
        late = int((await anext(one.output()))[1])
        there = cgroup_of(one.identity.pid)
        elsewhere = cgroup_of(two.identity.pid)
        assert there is not None
        assert elsewhere is not None
        directories = os.listdir(groups.directory)
        inside = members(f"{groups.directory}/{os.path.basename(there)}")

    assert len(inside) == 3
    assert {one.identity.pid, late} <= inside
    assert there != elsewhere
    assert os.path.basename(there).startswith("one.")
    assert {os.path.basename(there), os.path.basename(elsewhere)} <= set(directories)


@requires_cgroups
async def test_what_a_command_made_in_its_cgroup_goes_with_it(
    transport: LocalTransport, groups: RunGroups
) -> None:
    """Cgroups below it and who is in them."""
    async with transport.process(command("one", "sleep", "1000")) as process:
        cgroup = await until_in(groups, process.identity.pid)
        directory = f"{groups.directory}/{os.path.basename(cgroup)}"
        os.makedirs(f"{directory}/a/b")
        files_module.move(process.identity.pid, f"{directory}/a/b")
        inside = members(directory)
        exit_ = await process.end()

    assert inside == {process.identity.pid}
    assert exit_ == Exit(signal=15, by_us=True)
    with trio.fail_after(60):
        while os.path.exists(directory):
            await trio.sleep(0.01)


@requires_cgroups
async def test_a_live_run_is_told_from_one_that_ends(
    transport: LocalTransport, groups: RunGroups, tmp_path: Path
) -> None:
    """What has hidden everything is ended with its own command and with no other, and no look at
    everybody is made for it while its command goes on."""
    told = tmp_path / "told"
    name = os.path.basename(groups.directory)
    script = f'"$@" {QUIET}; echo there; exec sleep 1000'
    going_on = command("one", "sh", "-c", script, "sh", *HIDDEN, str(told), name)

    async with transport.process(going_on) as process:
        assert await anext(process.output()) == (1, b"there\n")
        with trio.fail_after(60):
            while not told.exists():
                await trio.sleep(0.01)
        pid = int(told.read_text())
        for _ in range(3):
            async with transport.process(command("two", "true")) as other:
                await other.wait()
        looks, alive = transport.looks, is_alive(pid)

    assert (looks, alive) == (0, True)
    assert not is_alive(pid)
    assert len(foreign_children()) == 1  # the fork server


@requires_cgroups
async def test_a_killed_daemons_processes_are_known_by_their_cgroup(
    groups: RunGroups, transport: LocalTransport, tmp_path: Path
) -> None:
    """Without parent, session, environment, directory, name and mark; and nobody else is."""
    told = tmp_path / "told"
    name = os.path.basename(groups.directory)
    run_id = RunId(str(uuid.uuid4()))
    script = f'"$@" {QUIET}; until [ -e {told} ]; do sleep 0.02; done; cat {told}; exec sleep 100'
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        with without_adoption():
            left = await left_by(
                run_id, "sh", "-c", script, "sh", *HIDDEN, str(told), name, groups=name
            )
        with killed_at_last(left) as pids:
            before = [is_alive(pid) for pid in pids]
            ended = await transport.sweep([], grace=0.3)
            after = [is_alive(pid) for pid in pids]
        spared = stranger.poll() is None
        stranger.kill()

    assert (before, after, spared) == ([True], [False], True)
    assert ended >= 2  # with the shell that told of it, and perhaps what that had started last


@requires_cgroups
async def test_another_daemons_cgroups_are_left_alone(
    transport: LocalTransport, groups: RunGroups
) -> None:
    """Its directory has another name."""
    another = f"{os.path.basename(groups.directory)}0"
    wait = f"until grep -q /{another}/ /proc/self/cgroup; do sleep 0.02; done"
    script = f"{wait}; echo $$; exec sleep 1000"
    async with daemon_with(own_run_id("one"), "sh", "-c", script, groups=another) as [pid]:
        ended = await transport.sweep([], grace=0.1)
        alive = is_alive(pid)
    theirs = RunGroups.open(another)
    assert theirs is not None
    await LocalTransport(groups=theirs).sweep([], grace=0.1)
    theirs.close()

    assert (ended, alive) == (0, True)


@requires_cgroups
@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_a_cgroup_that_goes_bad_takes_nothing_away(
    transport: LocalTransport, groups: RunGroups, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it cannot be made, or is taken away, processes are ended all the same."""

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    if when == "before":
        monkeypatch.setattr("sortie.transports.local.cgroups.os.mkdir", refuse)
    script = (
        f"setsid sh -c 'sleep 1000 & echo $!' {QUIET[12:]} & sleep 1000 {QUIET} & echo $!; wait"
    )

    async with transport.process(command("one", "sh", "-c", script)) as process:
        pid = int((await anext(process.output()))[1].split()[0])
        if when == "meanwhile":
            cgroup = await until_in(groups, process.identity.pid)
            await until_in(groups, pid)
            taken = f"{groups.directory}/{os.path.basename(cgroup)}"
            with trio.fail_after(60):
                while not remove(taken):  # something may have been forked meanwhile
                    for one in members(taken):
                        with suppress(ProcessLookupError):  # the shell between the two has ended
                            files_module.move(one, os.path.dirname(groups.directory))
                    await trio.sleep(0.01)

    assert not is_alive(pid)
    assert len(foreign_children()) == 1  # the fork server


@pytest.mark.parametrize(
    ("mounts", "own", "directory"),
    [
        (
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
            "/",
            "/sys/fs/cgroup/unified",
        ),
        (
            "30 20 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw",
            "/system.slice/sortie.service",
            "/sys/fs/cgroup/system.slice/sortie.service",
        ),
        (
            "30 20 0:27 /docker/1 /sys/fs/cg\\040roup ro - cgroup2 cgroup rw",
            "/docker/1/below",
            "/sys/fs/cg roup/below",
        ),
        ("30 20 0:27 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw", "/docker/12", None),
        ("30 20 0:27 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw", "/../2", None),
        ("30 20 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw", "/", None),
        ("", "/", None),
    ],
)
def test_the_hierarchy_is_found_by_the_mounts(
    mounts: str, own: str, directory: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hybrid, a unified one, and one of which a container sees a part, or not its own."""
    (tmp_path / "mountinfo").write_text(f"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n{mounts}\n")
    monkeypatch.setattr(files_module, "_MOUNTS", str(tmp_path / "mountinfo"))
    monkeypatch.setattr(files_module, "cgroup_of", lambda _: own)

    hierarchy = Hierarchy.of("self")

    assert (hierarchy and hierarchy.directory(hierarchy.own)) == directory


def test_where_no_cgroup_can_be_made_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that is no cgroup, and one that is not there."""
    for mount in (tmp_path, tmp_path / "none"):
        hierarchy = Hierarchy(mount=str(mount), root="/", own="/")

        assert hierarchy.make("sortie") is None


@requires_cgroups
async def test_another_users_process_is_killed_with_its_cgroup() -> None:
    """A daemon that is not root may not signal it, but kill the cgroup that it was left in."""
    if os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    hierarchy = Hierarchy.of("self")
    assert hierarchy is not None
    delegated = hierarchy.make(f"sortie-test-{uuid.uuid4().hex[:8]}")
    assert delegated is not None
    script = (
        "import encodings.ascii, os, trio\n"
        "from functools import partial\n"
        "from sortie.transports.local import LocalTransport, RunGroups\n"
        "os.setuid(65534)\n"
        "transport = LocalTransport(groups=RunGroups.open('sortie-unprivileged'))\n"
        "print(trio.run(partial(transport.sweep, [], grace=0.1)))\n"
        "trio.run(transport.close)\n"
    )
    left = f"{delegated}/sortie-unprivileged/run.1-1"
    os.makedirs(left)
    for place in (delegated, os.path.dirname(left), left):
        for name in (".", "cgroup.procs", "cgroup.kill"):
            os.chown(f"{place}/{name}", 65534, 65534)
    with subprocess.Popen(["sleep", "1000"]) as roots_own:
        files_module.move(roots_own.pid, left)
        inside = f'echo 0 > {delegated}/cgroup.procs && exec "$0" -c "$1"'
        argv = ["sh", "-c", inside, sys.executable, script]
        done = await trio.run_process(argv, cwd=PROJECT, capture_stdout=True)
        roots_own.poll()
        status = roots_own.returncode
        roots_own.kill()
    gone = remove(delegated)

    assert (done.stdout.split(), status, gone) == ([b"1"], -9, True)


@requires_cgroups
async def test_the_fork_servers_cgroup_goes_with_the_daemon(groups: RunGroups) -> None:
    """It is of no run, and nothing of this daemon is left in the hierarchy."""
    isolation = await in_thread(establish_isolation, Isolation.AUTO, 1, groups)
    transport = LocalTransport(os.environ["PATH"], groups=groups, server=isolation.server)
    made = os.listdir(groups.directory)

    await transport.close()

    assert any(name.startswith("no-run.") for name in made)
    assert not os.path.exists(groups.directory)
