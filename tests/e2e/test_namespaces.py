"""Two daemons for which one path means two places, as in containers that share processes."""

from __future__ import annotations

import json
import shutil

import psutil
import pytest
import trio

from tests.e2e.conftest import Start
from tests.e2e.daemon import run_command
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
