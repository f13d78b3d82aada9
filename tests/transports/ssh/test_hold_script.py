"""The script that holds a root on a host, run by the shells of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sortie.transports.remote.filesystem import holding_script

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def answer(shell: Sequence[str], root: Path, path: str | None = None) -> str:
    """Return what a shell whose stdin ends at once says, without the mark of our words."""
    script = holding_script("nonce", str(root), "pid 1 on alpha", "session-1", 30)
    env = {"PATH": path or os.environ["PATH"]}
    said = subprocess.run(
        shell, input=script, env=env, capture_output=True, check=False, timeout=60
    )
    return said.stdout.decode().replace("\1nonce ", "")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    """Give a shell without root's right to write everywhere."""
    found = [str(shutil.which(request.param)), *(["sh"] if request.param == "busybox" else [])]
    if os.geteuid() != 0:
        return found
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("needs setpriv to do without root's rights")
    return [setpriv, "--bounding-set=-dac_override", "--inh-caps=-dac_override", *found]


@pytest.fixture(params=["flock", "no flock"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Give the PATH of a host with and without flock(1)."""
    if request.param == "flock":
        return None
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("mkdir", "mv", "rm", "sleep", "timeout", "true"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    return str(tools)


def test_a_root_that_cannot_be_written_is_named(
    shell: list[str], path: str | None, tmp_path: Path
) -> None:
    """With what to do; the shell ends, though its question goes unanswered."""
    root = tmp_path / "root"
    root.mkdir(mode=0o500)

    said = answer(shell, root, path)

    assert said == (
        f"here\nno @daemon.lock cannot be written in {root};"
        " look at the space and the rights there\n"
    )


def test_a_lock_file_that_is_none_is_named(shell: list[str], tmp_path: Path) -> None:
    """Nobody is waited for at a FIFO that stands in its place."""
    os.mkfifo(tmp_path / "@daemon.lock")

    said = answer(shell, tmp_path)

    assert said == f"here\nno {tmp_path}/@daemon.lock is no regular file; remove it\n"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs flock or /proc")
def test_a_root_that_is_ours_already_is_said_to_be_so(
    shell: list[str], path: str | None, tmp_path: Path
) -> None:
    """And nothing else is said."""
    root = tmp_path / "root"
    script = holding_script("nonce", str(root), "pid 1 on alpha", "session-1", 30)
    env = {"PATH": path or os.environ["PATH"]}
    pipe = subprocess.PIPE
    with subprocess.Popen(shell, stdin=pipe, stdout=pipe, env=env) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        first.stdin.write(script)
        first.stdin.flush()
        begun = [first.stdout.readline(), first.stdout.readline()]

        said = answer(shell, root, path)

        first.stdin.close()

    assert begun[1].decode() == f"\1nonce yes held session-1 {root}\n"
    assert said == f"here\nyes ours session-1 {root}\n"


def test_a_name_of_ours_that_was_left_behind_is_told_by_its_session(
    shell: list[str], path: str | None, tmp_path: Path
) -> None:
    """The next holder has the lock before its name stands in the file, which has that of the last
    one until then."""
    root = tmp_path / "root"
    script = holding_script("nonce", str(root), "pid 2 on beta", "session-2", 30)
    env = {"PATH": path or os.environ["PATH"]}
    pipe = subprocess.PIPE
    with subprocess.Popen(shell, stdin=pipe, stdout=pipe, env=env) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(script)
        other.stdin.flush()
        _ = [other.stdout.readline(), other.stdout.readline()]
        (root / "@daemon.lock").write_text("pid 1 on alpha\n\nsession-0\n")

        said = answer(shell, root, path)

        other.stdin.close()

    assert said == f"here\nyes ours session-0 {root}\n"
