"""What scripts do where a newer leader comes in the middle, run by a shell of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from sortie.resources.lease import Lease
from sortie.transports import Command
from sortie.transports.remote.fence import LeaderFence, fence_name
from sortie.transports.remote.filesystem import holding_script
from sortie.transports.remote.launch_scripts import launch_script
from sortie.transports.remote.remote_launch import RemoteLaunch
from sortie.transports.remote.scripts import LEAVE, question_script, shell_script
from tests.transports.leftovers import bearers

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is looked at")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(shutil.which(request.param))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give a root whose leader has the token 4."""
    root = tmp_path / "root"
    (root / fence_name("flow")).mkdir(parents=True)
    announce(root, 4)
    return root


def announce(root: Path, token: int) -> None:
    (root / fence_name("flow") / f"token.{token}").touch()


def fence(root: Path, token: int = 4) -> LeaderFence:
    return LeaderFence(root=str(root), lease=Lease("flow", token, f"alpha:{token}", 0.0))


class Shell:
    """A shell under way, and what it says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin: IO[bytes] = process.stdin
        self.stdout: IO[bytes] = process.stdout
        self.process = process

    def write(self, content: bytes) -> None:
        self.stdin.write(content)
        self.stdin.flush()

    def hear(self) -> str:
        """Return the first word of its next message."""
        words = self.stdout.readline().decode().partition(" ")[2].split()
        return words[0] if words else ""


@contextmanager
def running(shell: str, tmp_path: Path) -> Iterator[Shell]:
    place = tmp_path / "tmp"
    place.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(place)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [shell], stdin=pipe, stdout=pipe, stderr=pipe, env=env, start_new_session=True
    ) as process:
        yield Shell(process)
        process.stdin.close() if process.stdin is not None else None


def launch(root: Path, *, stdin: bytes = b"") -> RemoteLaunch:
    command = Command(argv=("touch", "ran"), cwd=str(root), env={}, stdin=stdin or None)
    return RemoteLaunch(command=command, nonce="n", lease=30, fence=fence(root))


def begin(ran: Shell, given: RemoteLaunch) -> list[str]:
    """Have a script begin, and then the launch: a shell reads more at once than its script."""
    ran.write(launch_script(given))
    said = [ran.hear()]
    ran.write(b"go\n")
    return said


def test_a_launch_is_refused_before_anything_of_it_is_made(
    shell: str, root: Path, tmp_path: Path
) -> None:
    """The host stores no stdin for it, and has no note of it."""
    announce(root, 5)

    with running(shell, tmp_path) as ran:
        said = [*begin(ran, launch(root, stdin=b"text")), ran.hear()]

    assert said == ["here", "lost"]
    assert list((root / fence_name("flow")).glob("launch.*")) == []
    assert not (root / "ran").exists()


def test_a_launch_that_crosses_a_takeover_is_refused(
    shell: str, root: Path, tmp_path: Path
) -> None:
    """A token that comes when the launch has begun is seen before its program begins, and its
    watchdog ends."""
    given = launch(root, stdin=b"text")
    with running(shell, tmp_path) as ran:
        before = [*begin(ran, given), ran.hear()]
        announce(root, 5)
        ran.write(b"textgo\n")
        after = [ran.hear(), ran.hear()]
        ran.process.wait(30)
        until = time.monotonic() + 60
        while bearers(str(given.marker)) and time.monotonic() < until:
            time.sleep(0.02)

    assert (before, after) == (["here", "send"], ["stored", "lost"])
    assert not (root / "ran").exists()
    assert bearers(str(given.marker)) == []


def test_a_launch_that_crosses_a_takeover_is_ended(shell: str, root: Path, tmp_path: Path) -> None:
    """A takeover that comes when the launch has begun ends it before the root is its own."""
    given = launch(root, stdin=b"text")
    with running(shell, tmp_path) as ran:
        before = [*begin(ran, given), ran.hear()]
        newer = hold(shell, root, 5)
        status = ran.process.wait(30)

    assert (before, newer) == (["here", "send"], "yes held")
    assert status == -9
    assert not (root / "ran").exists()


def hold(shell: str, root: Path, token: int) -> str:
    """Return what a session says that wants to hold the root, and whose stdin ends."""
    lease = Lease("flow", token, f"alpha:{token}", 0.0)
    script = holding_script("n", str(root), f"life {token}", "session", 30, lease)
    said = subprocess.run([shell], input=script, capture_output=True, check=False, timeout=60)
    return said.stdout.decode().split("\1n ")[-1].removesuffix(f" session {root}\n").strip()


def test_a_token_is_written_upwards_only(shell: str, root: Path) -> None:
    """Whatever the order in which leaders come, and whether one holds the root or not."""
    said = [hold(shell, root, token) for token in (4, 7, 5, 6)]
    known = [path.name for path in root.glob("@leader-*/token.*")]
    again = hold(shell, root, 7)

    assert (said, again) == (["yes held", "yes held", "lost", "lost"], "yes held")
    assert known == ["token.7"]


def test_long_tokens_are_compared_as_numbers(shell: str, root: Path) -> None:
    """A sequence of the database gives up to 63 bits."""
    said = [hold(shell, root, token) for token in (99, 100, 2**63 - 1, 10**18, 9)]

    assert said == ["yes held", "yes held", "yes held", "lost", "lost"]


@pytest.mark.parametrize(("token", "expected"), [(4, "yes"), (3, "lost"), (8, "unled")])
def test_a_question_is_answered_for_the_newest_leader_alone(
    shell: str, root: Path, tmp_path: Path, token: int, expected: str
) -> None:
    """One whose token the root does not know has to take the root first."""
    body = fence(root, token).question([b": >%s/done\nwhole yes" % os.fsencode(tmp_path)])

    with running(shell, tmp_path) as asked:
        asked.write(shell_script("n") + question_script(body))
        said = [asked.hear(), asked.hear()]
        asked.write(LEAVE)

    assert said == ["here", expected]
    assert (tmp_path / "done").exists() == (expected == "yes")
