"""The verdicts on what games leave can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from sortie.transports.local import RunGroups
from tests.docs.pages import ROOT
from tests.e2e.traces import cgroups, temporary_files
from tests.transports.endings import requires_cgroups

_LOOK = """
import json, pathlib, sys
from tests.e2e.traces import processes_about
print(json.dumps(list(processes_about(pathlib.Path(sys.argv[1])))))
"""


def about(place: Path) -> list[str]:
    """Return who is found from a process that has started nobody."""
    command = [sys.executable, "-c", _LOOK, str(place)]
    # Nor may the command itself be found by its arguments: it does not count itself.
    said = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=60).stdout
    found = json.loads(said)
    assert isinstance(found, list)
    return found


def test_processes_that_know_the_place_are_found(tmp_path: Path) -> None:
    """By a variable, their directory, or a file that they have open; nobody when they have gone."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "file").touch()
    with open(place / "file") as opened:
        left = [
            subprocess.Popen(["sleep", "600"], cwd="/", env={"HOME": str(place)}),
            subprocess.Popen(["sleep", "600"], cwd=place, env={}),
            subprocess.Popen(["sleep", "600"], cwd="/", env={}, stdin=opened),
        ]
    try:
        found = about(place)
    finally:
        for process in left:
            process.kill()
            process.wait()

    assert {int(one.split()[0]) for one in found} == {process.pid for process in left}
    assert about(place) == []


def test_a_temporary_file_is_found(tmp_path: Path) -> None:
    """By its name."""
    (tmp_path / "left").touch()

    assert list(temporary_files(tmp_path)) == ["a temporary file: left"]


@requires_cgroups
def test_a_cgroup_is_found() -> None:
    """By the pid of who has made it, as long as it is there."""
    began = time.time() - 1
    groups = RunGroups.open("sortie-test-of-traces")
    assert groups is not None
    group = groups.new(None)
    group.make()
    found = list(cgroups([os.getpid()], began))
    group.leave()
    groups.close()

    assert f"a cgroup: {group.directory}" in found
    assert f"a cgroup: {group.directory}" not in list(cgroups([os.getpid()], began))
