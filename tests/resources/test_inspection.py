"""A process that forbids it cannot be looked into by others of its user, and what it starts can."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")

# As an ordinary user, since root may look at everything. What looks is another program, as an
# agent is; the last line is of a program that is started after all, and looked at.
PROGRAM = """
import ctypes, os, subprocess, sys
from sortie.resources.prctl import forbid_inspection

if os.geteuid() == 0:
    os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # a change of user has forbidden it

def looks(pid):
    script = f'cat /proc/{pid}/environ >/dev/null && echo environ; ls /proc/{pid}/fd >/dev/null &&'
    script += f' echo fd; head -c 1 /proc/{pid}/maps >/dev/null && echo maps; echo end'
    ran = subprocess.run(['/bin/sh', '-c', script], capture_output=True, text=True)
    return ' '.join(ran.stdout.split())

print(looks(os.getpid()))
print(forbid_inspection())
print(looks(os.getpid()))
started = subprocess.Popen(['/bin/cat'], stdin=subprocess.PIPE)
print(looks(started.pid))
started.communicate()
print(len(os.listdir('/proc/self/fd')) > 2, bool(open('/proc/self/mountinfo').read(1)))
"""


def test_nobody_looks_into_it_and_into_what_it_starts_everybody() -> None:
    """Environment, files and memory are open before and closed after; a program that it starts is
    as any other, and what it must see of itself it still sees."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "environ fd maps end",
        "True",
        "end",
        "environ fd maps end",
        "True True",
    ]
