"""The ways in which a daemon ends who is left of a run, by what stands before its command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sortie.transports.local.cgroup_files import Hierarchy

_SCRIPT = 'mount -o remount,bind,ro "$0" && exec "$@"'
_PROGRAM = str(Path(__file__).parent / "programs" / "looking_at_everybody.py")


SEARCHING = ("env", "SORTIE_ISOLATION=none")
"""Has a daemon make no PID namespaces, and search for what is left."""


def _words() -> tuple[str, ...]:
    hierarchy = Hierarchy.of("self")
    if hierarchy is None or shutil.which("unshare") is None:
        return ()
    return (
        *SEARCHING,
        "unshare",
        "-m",
        "--propagation",
        "private",
        "sh",
        "-c",
        _SCRIPT,
        hierarchy.mount,
    )


WITHOUT_CGROUPS = _words()
"""Has a daemon find the cgroup v2 hierarchy mounted read-only, as an ordinary user's does."""

BY_EVERYBODY = (*WITHOUT_CGROUPS, sys.executable, _PROGRAM)
"""The same without a list of the daemon's own children, so that each end looks at everybody."""


def _works() -> bool:
    if not WITHOUT_CGROUPS:
        return False
    done = subprocess.run([*WITHOUT_CGROUPS, "true"], check=False, capture_output=True)
    return done.returncode == 0


requires_a_mount = pytest.mark.skipif(
    not _works(), reason="no cgroup v2 hierarchy can be mounted read-only here"
)

HERE = pytest.param((), id="here")
"""With PID namespaces, where they can be had, else with cgroups."""

OTHER_WAYS = (
    pytest.param(SEARCHING, marks=pytest.mark.full, id="cgroups"),
    pytest.param(WITHOUT_CGROUPS, marks=requires_a_mount, id="without-cgroups"),
    pytest.param(BY_EVERYBODY, marks=(requires_a_mount, pytest.mark.full), id="everybody"),
)
"""By cgroups, where they can be had; without, by the daemon's own children, and by everybody."""
