"""What the turns of a session on a remote host cost, beside the ssh program over a master.

The host is an sshd on loopback. The daemon's side is the daemon's process; the whole is that with
the host's sshd and all that it has waited for, which leaves out what outlives its session.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.benchmarks.place import PATIENCE, BenchmarkPlace, benchmark_place
from tests.benchmarks.row import Scale, Value, middle
from tests.benchmarks.spending import clock_of
from tests.benchmarks.turn import gap
from tests.benchmarks.ways import Target, ssh_command
from tests.transports.ssh.sshd import Keys, Sshd, sshd_running

TURNS = 80
SETTING_UP = 5


def remote_turns(scale: Scale) -> Mapping[str, Value]:
    """Measure turns of an agent that ends at once: processor time of the daemon's side, and the
    time from the end of one agent to the beginning of the next, both in milliseconds."""
    count, skipped = scale.often(TURNS, 3), scale.of(SETTING_UP, 1)
    with benchmark_place() as place:
        place.write_agent("echo over >&3")
        keys = Keys.make(place.root / "client")
        with sshd_running(place.root / "host", keys) as host:
            target = Target(port=host.port, settings=host.know(), place=str(place.root))
            base_cpu, base_gap = _bare(place, target, scale.of(TURNS // 2, 2))
            place.marks.clear()
            _configure(place, host, count + skipped)
            place.add_issue("ONE")
            with place.daemon() as daemon:
                place.marks.wait("begun", skipped + 1)
                with daemon.spending() as spending:
                    done, there = len(place.marks.seen("begun")) - 1, _at_host(host)
                    place.marks.wait("over", skipped + count)
                    beyond = _at_host(host) - there
                daemon.wait("run.finished", status="succeeded")
    each = 1e3 / (skipped + count - done)
    cpu, whole = spending.used.own * each, (spending.used.own + beyond) * each
    return {
        "remote.cpu": Value(ours=cpu, baseline=base_cpu, also={"with the host's side": whole}),
        "remote.gap": Value(ours=gap(place, skipped), baseline=base_gap),
    }


def _configure(place: BenchmarkPlace, host: Sshd, turns: int) -> None:
    settings = host.settings
    worker = {
        "ssh_hosts": [host.host],
        "ssh_config": settings.config,
        "ssh_known_hosts": settings.known_hosts,
        "ssh_identity_files": list(settings.identity_files),
    }
    place.configure(agent={"max_turns": turns}, workspace={"root": "~/workspaces"}, worker=worker)


def _at_host(host: Sshd) -> float:
    """Return the seconds that the sshd of a host has spent, with what it has waited for."""
    total = 0.0
    for process in host.processes():
        times = process.cpu_times()
        total += clock_of(process.pid) + times.children_user + times.children_system
    return total


def _bare(place: BenchmarkPlace, target: Target, count: int) -> tuple[float, float]:
    """Run the agent with the ssh program over a master: milliseconds of processor time for each,
    the master's included, and from the end of one to the beginning of the next."""
    spent = []
    with _master(target) as (path, master):
        argv = [*ssh_command(target, path), str(place.agent), "chat"]
        for _ in range(count):
            before = clock_of(master)
            program = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            assert program.stdout is not None
            program.stdout.read()
            program.stdout.close()
            _, status, used = os.wait4(program.pid, 0)
            program.returncode = os.waitstatus_to_exitcode(status)
            assert program.returncode == 0, f"ssh ended with {program.returncode}"
            more = used.ru_utime + used.ru_stime + clock_of(master) - before
            spent.append(more * 1e3)
    return middle(spent), gap(place)


@contextmanager
def _master(target: Target) -> Iterator[tuple[str, int]]:
    """Keep a connection of the ssh program; give its socket and its pid."""
    path = f"{target.place}/master"
    argv = ssh_command(target, path)
    options = ["-o", "ControlMaster=yes", "-N"]
    master = psutil.Popen(
        [*argv[:-1], *options, argv[-1]], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + PATIENCE
        while not Path(path).is_socket():
            assert time.monotonic() < until, "ssh keeps no connection"
            time.sleep(0.01)
        yield path, master.pid
    finally:
        master.kill()  # ssh may miss a SIGTERM that comes just before it waits
        master.wait()
