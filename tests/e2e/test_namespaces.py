"""Daemons in mount namespaces of their own, as in containers."""

from __future__ import annotations

import json
import shutil

import psutil
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import Daemon, run_command
from tests.e2e.place import Place
from tests.ports import free_port
from tests.transports.mounts import requires_mounts


@requires_mounts
async def test_a_daemon_ends_none_that_has_its_path_in_another_mount_namespace(
    place: Place,
    start: Start,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Mark and cgroup are the database's, and not its path's."""
    place.add_issue("A", "hang=1")
    other = tmp_path_factory.mktemp("other")

    async with start() as daemon:
        await daemon.line("turn.started", issue="A")
        leave = shutil.ignore_patterns(".sortie.db*", "workspaces", "*.sock")
        shutil.copytree(place.root, other, dirs_exist_ok=True, ignore=leave)
        for issue in (other / "issues").iterdir():
            issue.unlink()
        mounted = f'mount --bind {other} {place.root} && cd {place.root} && exec "$@"'
        command = run_command("--exit-when-idle", port=free_port())
        second = await trio.run_process(
            ["unshare", "-m", "sh", "-c", mounted, "sh", *command],
            env=place.environ({}),
            check=False,
            capture_stderr=True,
        )
        alive = psutil.pid_exists(daemon.process.pid)
        state = await daemon.state()

    assert second.returncode == 0, second.stderr
    assert b"daemon.started" in second.stderr
    assert b"orphans.reaped" not in second.stderr
    assert alive
    assert [run["issue_identifier"] for run in state["running"]] == ["A"], json.dumps(state)


@requires_mounts
async def test_a_daemon_for_which_the_boot_has_another_id_is_found(
    place: Place, nursery: trio.Nursery
) -> None:
    """As it is for a hardened unit in a container of systemd, and for the shell beside it."""
    boot = place.root / "boot"
    boot.write_text("00000000-1111-2222-3333-444444444444\n")
    hidden = f'mount --bind {boot} /proc/sys/kernel/random/boot_id && exec "$@"'
    port = free_port()
    command = ("unshare", "-m", "sh", "-c", hidden, "sh", *run_command(port=port))

    async with Daemon(place, nursery, command, port) as daemon:
        await daemon.ready()
        ran = await place.sortie("status")
        looked = await place.sortie("doctor", "--format", "json")

    assert (ran.code, ran.err) == (0, "")
    assert "running, ready" in ran.out
    told = {each["check"]: each["message"] for each in json.loads(looked.out)["checks"]}
    assert told["machine.isolation"].startswith("the daemon says that ")
    assert told["machine.files"].startswith("the daemon may have ")
