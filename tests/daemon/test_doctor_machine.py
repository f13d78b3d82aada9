"""What the doctor says of this machine: each fault with its remedy, and nothing left behind."""

from __future__ import annotations

import os
import resource
import socket
from collections import namedtuple
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from sortie.daemon.doctor import limits, machine
from sortie.daemon.doctor.limits import DaemonLimits
from sortie.daemon.doctor.machine import (
    daemon_result,
    disk_result,
    git_result,
    isolation_result,
    port_result,
)
from sortie.daemon.endpoint_file import DaemonEndpoint, EndpointFile, endpoint_of_this_process
from sortie.daemon.locks import database_lock
from sortie.daemon.root_lock import RootLock
from sortie.model import SortieError
from sortie.model.checks import CheckOutcome
from sortie.transports.local import LocalTransport
from tests.ports import free_port
from tests.worker.rig import settings_of

GIT = """\
#!/bin/sh
case "$*" in
  --version) echo git version 9 ;;
  *user.name) [ -n "$GIT_NAME" ] && echo "$GIT_NAME" ;;
  *user.email) echo a@example.com ;;
esac
"""


async def test_git_has_to_be_there_and_to_know_who_commits(tmp_path: Path) -> None:
    """A commit of an agent fails without a name, which is found before one does."""
    program = tmp_path / "git"
    transport = LocalTransport(str(tmp_path))
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    absent = await git_result(transport, {"PATH": str(tmp_path)})
    program.write_text(GIT)
    program.chmod(0o755)

    nameless = await git_result(transport, path)
    given = await git_result(transport, path | {"GIT_COMMITTER_NAME": "A"})
    named = await git_result(transport, path | {"GIT_NAME": "A"})

    assert absent.outcome is CheckOutcome.WARNING
    assert "apt-get install git" in absent.remedy
    assert (nameless.outcome, "user.name" in nameless.sentence) == (CheckOutcome.WARNING, True)
    assert "user.email" not in nameless.sentence
    assert given.outcome is CheckOutcome.OK
    assert named.sentence == "git version 9 can commit"


@pytest.mark.parametrize(
    ("free", "outcome"),
    [
        (1 << 20, CheckOutcome.FAILED),
        (1 << 29, CheckOutcome.WARNING),
        (1 << 33, CheckOutcome.WARNING),  # a hundredth of the disk
        (1 << 39, CheckOutcome.OK),
    ],
)
def test_a_disk_that_is_nearly_full_is_told(
    monkeypatch: pytest.MonkeyPatch, free: int, outcome: CheckOutcome
) -> None:
    """By what is left, and by what that is of the whole."""
    monkeypatch.setattr(machine, "room_at", lambda _path: (float(free), float(1 << 40)))

    found = disk_result({"database": "/"})

    assert found.outcome is outcome
    assert (found.remedy == "") == (outcome is CheckOutcome.OK)


def test_a_disk_without_inodes_is_full(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """There may be much room, and no file can be made."""
    found = namedtuple("found", "f_files f_favail")
    monkeypatch.setattr(machine, "room_at", lambda _path: (float(1 << 39), float(1 << 40)))
    monkeypatch.setattr(os, "statvfs", lambda _path: found(1000, 0))

    result = disk_result({"workspaces": str(tmp_path / "not" / "there")})

    assert result.outcome is CheckOutcome.FAILED
    assert "inode" in result.sentence


def test_a_daemon_on_the_same_places_is_named(tmp_path: Path) -> None:
    """One of this database is well; one that has the root alone is in the way."""
    settings = settings_of(workspace={"root": str(tmp_path)}).model_copy(
        update={"db_path": str(tmp_path / "db")}
    )
    none = daemon_result(settings)
    with database_lock(settings.db_path) as lock:
        lock.ensure()
        ours = daemon_result(settings)
    with RootLock(str(tmp_path)) as root:
        root.ensure()
        another = daemon_result(settings)

    assert (none.outcome, none.sentence.split(";")[0]) == (
        CheckOutcome.OK,
        "no daemon is at work",
    )
    assert ours.sentence.startswith("a daemon is at work (")
    assert another.outcome is CheckOutcome.FAILED
    assert "workspace.root" in another.remedy


async def test_a_port_that_is_taken_is_told() -> None:
    """Asked for, it fails a start; the default one is passed over; and a good one stays free."""
    port = free_port()
    settings = settings_of(server={"port": port})
    well = await port_result(settings)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))  # so the check has given it back
        other.listen()
        with pytest.raises(SortieError, match="is taken"):
            await port_result(settings)
    none = await port_result(settings_of(server={"port": 0}))
    await trio.lowlevel.checkpoint()

    assert well.sentence == f"a daemon can listen on http://127.0.0.1:{port}/"
    assert none.outcome is CheckOutcome.WARNING


@pytest.mark.parametrize(
    ("most", "outcome"),
    [
        (100, CheckOutcome.FAILED),
        (150, CheckOutcome.WARNING),
        (180, CheckOutcome.OK),
        (resource.RLIM_INFINITY, CheckOutcome.OK),
    ],
)
async def test_files_are_enough_for_the_runs_that_are_allowed(
    monkeypatch: pytest.MonkeyPatch, most: int, outcome: CheckOutcome
) -> None:
    """Ten runs take sixty descriptors, and the daemon some of its own."""
    monkeypatch.setattr(limits, "_limit", lambda _pid, _kind: (64, most))

    found = await DaemonLimits(settings_of()).files()

    assert found.outcome is outcome
    assert ("LimitNOFILE" in found.remedy) == (outcome is not CheckOutcome.OK)


@pytest.mark.parametrize(
    ("room", "outcome"),
    [
        (None, CheckOutcome.OK),
        ((20, "its cgroup has 4 of 24"), CheckOutcome.FAILED),
        ((200, "its user has 4 of 204"), CheckOutcome.WARNING),
        ((4000, "its user has 4 of 4004"), CheckOutcome.OK),
    ],
)
async def test_processes_are_enough_for_their_agents(
    monkeypatch: pytest.MonkeyPatch, room: tuple[int, str] | None, outcome: CheckOutcome
) -> None:
    """What limits them most is named."""
    monkeypatch.setattr(limits, "_room_for_tasks", lambda _pid: room)

    found = await DaemonLimits(settings_of()).processes()

    assert found.outcome is outcome
    assert room is None or room[1] in found.sentence


def test_the_room_of_a_cgroup_is_the_least_on_the_way_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A slice may have less room than the service in it."""
    service = tmp_path / "slice" / "service"
    service.mkdir(parents=True)
    for directory, most, used in ((service, "max", 3), (service.parent, "50", 20)):
        (directory / "pids.max").write_text(f"{most}\n")
        (directory / "pids.current").write_text(f"{used}\n")
    monkeypatch.setattr(limits, "_cgroup_directory", lambda _pid: str(service))

    assert limits._room_of_cgroup(1) == (30, "its cgroup has 20 of 50")


async def test_cgroups_are_looked_for_and_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A cgroup of version 2 that can be written is all it takes."""
    checked = DaemonLimits(settings_of())
    monkeypatch.setattr(limits, "_cgroup_directory", lambda _pid: str(tmp_path))
    without = await checked.cgroups()
    for name in ("cgroup.procs", "cgroup.controllers"):
        (tmp_path / name).touch()
    with_one = await checked.cgroups()

    assert (without.outcome, with_one.outcome) == (CheckOutcome.WARNING, CheckOutcome.OK)
    assert "Delegate=yes" in without.remedy
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cgroup.controllers",
        "cgroup.procs",
    ]


def endpoint_here(isolation: str, *, refused: bool) -> DaemonEndpoint:
    """Return what a daemon leaves that is this process."""
    endpoint = endpoint_of_this_process(url=None, token=None, workflow="w")
    return replace(endpoint, isolation=isolation, isolation_refused=refused)


@pytest.mark.parametrize("refused", [False, True])
def test_the_isolation_of_the_daemon_at_work_is_told(tmp_path: Path, refused: bool) -> None:
    """Its unit may forbid what a shell may do, or the other way round."""
    settings = settings_of().model_copy(update={"db_path": str(tmp_path / "a.db")})
    EndpointFile(settings.db_path, endpoint_here("it is so", refused=refused)).write()

    found = isolation_result(settings)

    assert found.sentence == "the daemon says that it is so"
    assert found.outcome is (CheckOutcome.WARNING if refused else CheckOutcome.OK)
    assert bool(found.remedy) == refused


async def test_a_daemon_for_which_the_boot_has_another_id_is_looked_at(tmp_path: Path) -> None:
    """As for a hardened unit in a container of systemd: it is known by the lock that it holds."""
    settings = settings_of().model_copy(update={"db_path": str(tmp_path / "a.db")})
    endpoint = endpoint_here("it is so", refused=False)
    other_boot = replace(endpoint.process, started_at=endpoint.process.started_at + 2**35)
    EndpointFile(settings.db_path, replace(endpoint, process=other_boot)).write()
    checked = DaemonLimits(settings)

    without = await checked.files()
    with database_lock(settings.db_path) as lock:
        lock.ensure()
        found = await checked.files(), isolation_result(settings)

    assert without.sentence.startswith("a daemon started from here ")
    assert [each.sentence.split(" ")[:2] for each in found] == [["the", "daemon"]] * 2
