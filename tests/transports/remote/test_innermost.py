"""Whom the request to end goes to, of what waits for a program and what it has started."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sortie.transports.remote.scripts import texts
from tests.transports.endings import requires_namespaces

_FOUND = """
mkfifo up
sh -c "$1" >up & P=$!
read -r up <up
innermost "$P" 0
[ -z "$c" ] || read -r name <"/proc/$c/comm"
child_of "$P"
kill -s KILL $c "$P"
echo "${name:-nobody}"
"""


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(
    ("waiting", "found"),
    [
        pytest.param("sleep 60 & echo up; wait", "nobody", id="not-yet"),
        pytest.param(
            "exec unshare --pid --fork --kill-child sh -c 'echo up; while :; do sleep 1; done'",
            "sh",
            id="begun",
            marks=requires_namespaces,
        ),
    ],
)
def test_what_prepares_a_program_is_not_the_program(
    shell: str, waiting: str, found: str, tmp_path: Path
) -> None:
    """What is not in the namespace yet is none: SIGTERM is for what would become the program."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell}")
    script = b"\n".join([*texts("stat_of", "child_of", "innermost"), _FOUND.encode()]).decode()

    told = subprocess.run(
        [path, "-c", script, "x", waiting],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert told.stdout.strip() == found
