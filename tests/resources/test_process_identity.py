"""How a process is told apart from every other, whatever happens to the clock."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sortie.resources.process_identity import identity_of, started_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")

BOOT = "4aee7c55-dc09-4abb-89a0-2d1e2791368b"
NEXT_BOOT = "4aee7c55-dc09-4abb-89a0-2d1e2791368c"
YEARS = 10 * 366 * 86400 * 100
TODAY = 1.8e9


def stat(ticks: int) -> bytes:
    """Return a /proc/<pid>/stat as of a program whose name tries to confuse."""
    return f"7 (a) R 1 (b) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0\n".encode()


@pytest.mark.parametrize("ticks", [0, 123, YEARS])
def test_boots_and_ticks_are_told_apart(ticks: int) -> None:
    """A tick later and a boot later is another process; no time of day comes near any."""
    moments = {
        started_at(boot, stat(ticks + later)) for boot in (BOOT, NEXT_BOOT) for later in (0, 1)
    }

    assert len(moments) == 4
    assert min(moments) > TODAY


def test_a_process_stays_what_it_is() -> None:
    """Another program, another environment and death change nothing until it is reaped."""
    script = "read line; exec env -i /bin/sh -c 'echo changed; read line'"
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", script], stdin=pipe, stdout=pipe) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        recorded = identity_of(child.pid)
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"changed\n"
        changed = identity_of(child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        dead = identity_of(child.pid)

    assert (changed, dead) == (recorded, recorded)
    with pytest.raises(OSError, match=str(child.pid)):
        identity_of(child.pid)


def test_any_process_sees_the_same_identity() -> None:
    """What one life of the daemon records, the next recognises."""
    script = (
        "import sys\n"
        "from sortie.resources.process_identity import identity_of\n"
        "print(repr(identity_of(int(sys.argv[1])).started_at))\n"
    )

    argv = [sys.executable, "-c", script, str(os.getpid())]
    told = subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    assert float(told) == identity_of(os.getpid()).started_at
