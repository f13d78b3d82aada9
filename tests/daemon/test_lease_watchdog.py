"""The watchdog of leases, as the process that it is: what it kills, and when it does not."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sortie.daemon.lease_watchdog import __main__ as program
from sortie.transports.local.cgroup_files import Hierarchy
from sortie.transports.local.cgroups import RunGroups

DAEMON = """
import subprocess, sys, time
from sortie.daemon.watchdog_client import LeaseWatchdog
from sortie.resources.lease import boot_time
watchdog = LeaseWatchdog()
{before}
print("ready", watchdog._process.pid if watchdog._process else 0, flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Watched:
    """A process that has a watchdog, and obeys lines of Python."""

    def __init__(self, before: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", DAEMON.format(before=before)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.watchdog = int(self.said().split()[1])

    def said(self) -> str:
        """Return its next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def do(self, line: str) -> None:
        """Have it do something."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        assert self.said() == "done\n"

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    """A process with a deadline in a second, or what the test's parameter says."""
    made = Watched(getattr(request, "param", "watchdog.extend('w', boot_time() + 1)"))
    yield made
    made.end()


def is_gone(pid: int) -> bool:
    """Tell whether a process ends within a minute."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_a_deadline_that_passes_ends_the_process(watched: Watched) -> None:
    """By SIGKILL; then the watchdog ends, too, and the last line of the log says why."""
    assert watched.process.wait(60) == -signal.SIGKILL
    assert is_gone(watched.watchdog)
    assert watched.process.stderr is not None
    (line,) = watched.process.stderr.readlines()
    assert line.startswith(
        f"sortie: the watchdog has killed the daemon, process {watched.process.pid}, with SIGKILL:"
        " it neither renewed the lease of w in time nor gave it up"
    )


def test_a_stopped_process_is_ended_as_well(watched: Watched) -> None:
    """Else it would go on where it stood, an hour later."""
    watched.process.send_signal(signal.SIGSTOP)

    assert watched.process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("watched", ["watchdog.extend('w', boot_time() + 600)"], indirect=True)
def test_what_was_extended_or_cleared_ends_nothing(watched: Watched) -> None:
    """The other deadline counts still, and ends the process when it passes."""
    watched.do("watchdog.extend('w', boot_time() + 3); watchdog.extend('w', boot_time() + 600)")
    watched.do("watchdog.extend('v', boot_time() + 2); watchdog.clear('v')")
    time.sleep(4)
    lives = watched.process.poll() is None
    watched.do("watchdog.extend('w', boot_time() + 0.1)")

    assert lives
    assert watched.process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("said", ["watchdog.extend('w', boot_time() + 600)", "watchdog.clear('w')"])
def test_a_watchdog_that_is_late_hears_what_was_said_in_time(watched: Watched, said: str) -> None:
    """It may have been without a processor itself, for longer than the deadline."""
    os.kill(watched.watchdog, signal.SIGSTOP)
    watched.do(f"time.sleep(1.5); {said}; watchdog.extend('v', boot_time() + 600)")
    os.kill(watched.watchdog, signal.SIGCONT)
    time.sleep(1)
    lives = watched.process.poll() is None
    watched.do("watchdog.extend('v', boot_time() + 0.1)")

    assert lives
    assert watched.process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize("watched", ["watchdog.extend('w', boot_time() + 600)"], indirect=True)
def test_one_that_was_killed_is_replaced(watched: Watched) -> None:
    """The next deadline starts another one, which knows of all."""
    os.kill(watched.watchdog, signal.SIGKILL)
    watched.do("watchdog._process.wait(); watchdog.extend('w', boot_time() + 600)")
    watched.do("watchdog.extend('v', boot_time() + 0.2)")

    assert watched.process.wait(60) == -signal.SIGKILL


@pytest.mark.parametrize(
    "watched",
    [
        "from sortie.transports.local.mark import carry, mark_of_database\n"
        "mark = mark_of_database('watched')\n"
        "watchdog.extend('w', boot_time() + 600)\n"
        "watchdog.find_runs_by(cgroup=None, mark=mark)\n"
        "assert carry(mark)\n"
    ],
    indirect=True,
)
def test_what_carries_the_mark_ends_with_the_process(watched: Watched) -> None:
    """Also where the daemon was killed by something else, and its runs live in no namespace."""
    watched.do("child = subprocess.Popen(['sleep', '600'], start_new_session=True)")
    (child,) = [
        each
        for each in psutil.Process(watched.process.pid).children()
        if each.pid != watched.watchdog
    ]
    watched.process.kill()

    assert is_gone(child.pid)
    assert is_gone(watched.watchdog)


def test_runs_end_at_once_where_the_daemon_lingers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that waits for its disk dies of SIGKILL only when the disk answers."""
    mark, lived = 0x5EED_0001, list[bool]()
    with subprocess.Popen(["sleep", "600"]) as run, subprocess.Popen(["sleep", "600"]) as daemon:
        resource.prlimit(run.pid, resource.RLIMIT_RSS, (mark, resource.RLIM_INFINITY))
        pidfd = os.pidfd_open(daemon.pid)

        def wait(*_: object) -> None:
            lived.append(not is_gone(run.pid))

        monkeypatch.setattr(program, "_kill", lambda _: None)
        monkeypatch.setattr(select, "select", wait)
        watch = program._Watch(daemon.pid)
        watch.hear(f"mark {mark}")
        program._end(watch, pidfd)
        monkeypatch.undo()
        is_still_there = daemon.poll() is None
        os.close(pidfd)
        daemon.kill()
        run.kill()

    assert lived == [False]
    assert is_still_there


@pytest.mark.parametrize("watched", ["watchdog.extend('w', boot_time() + 600)"], indirect=True)
def test_an_end_in_good_order_ends_nothing(watched: Watched) -> None:
    """The watchdog that was told so leaves what is there alone."""
    watched.do("watchdog.extend('w', boot_time() + 2); watchdog.close()")

    assert is_gone(watched.watchdog)
    time.sleep(2.5)
    assert watched.process.poll() is None


def test_only_cgroups_of_the_daemon_itself_are_killed(tmp_path: Path) -> None:
    """The next leader may be a process of the same machine, whose runs have theirs beside them."""
    groups = RunGroups(Hierarchy(mount=str(tmp_path), root="/", own="/"), str(tmp_path))
    ours = groups.new("run").directory
    theirs = ours.replace(f".{os.getpid()}-", ".1-")
    for directory in (str(tmp_path), ours, f"{ours}/inner", theirs):
        os.makedirs(directory, exist_ok=True)
        Path(directory, "cgroup.kill").touch()
    watch = program._Watch(os.getpid())
    watch.hear(f"cgroup {tmp_path}")

    program._kill_runs(watch)

    killed = {str(one.parent) for one in tmp_path.rglob("cgroup.kill") if one.read_text() == "1"}
    assert killed == {ours, f"{ours}/inner"}
