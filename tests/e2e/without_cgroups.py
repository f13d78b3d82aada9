"""Has a daemon live where the cgroup v2 hierarchy cannot be written, as for an ordinary user."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sortie.transports.local.cgroup_files import Hierarchy

_SCRIPT = 'mount -o remount,bind,ro "$0" && exec "$@"'


def _words() -> tuple[str, ...]:
    hierarchy = Hierarchy.of("self")
    if hierarchy is None or shutil.which("unshare") is None:
        return ()
    return ("unshare", "-m", "--propagation", "private", "sh", "-c", _SCRIPT, hierarchy.mount)


WITHOUT_CGROUPS = _words()
"""What to put before a command so that it finds the hierarchy mounted read-only."""


def _works() -> bool:
    if not WITHOUT_CGROUPS:
        return False
    done = subprocess.run([*WITHOUT_CGROUPS, "true"], check=False, capture_output=True)
    return done.returncode == 0


requires_a_mount = pytest.mark.skipif(
    not _works(), reason="no cgroup v2 hierarchy can be mounted read-only here"
)
