"""Who is younger than a process is found by pids, in every shell."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sortie.transports.remote.scripts import texts

_STARTED = """
ulimit -S -w "$M" || ulimit -S -x "$M"
sh -c "$1" & P=$!
ulimit -S -w 0 || ulimit -S -x 0
stat_of "$P" && set -- $s && S=${20}
wait "$P"
clock() { t=$S; }  # however long the machine takes, the program has ended soon
left_nothing && echo nothing || echo something
"""
MARK = 41 * 10**17 + 7


def said(shell: str, script: str, *arguments: str) -> str:
    """Return what a script says that has all functions which look for younger processes."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell}")
    names = ("stat_of", "clock", "newest", "end_tree", "left_nothing")
    text = b"\n".join([*texts(*names), f"M={MARK}\nspared=\n{script}".encode()]).decode()
    command = [found, "-c", text, "x", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_pids_that_come_round_are_all_looked_at(shell: str) -> None:
    """Those behind the first one up to the highest, and those from 1 on."""
    script = "read_newest() { newest=3; }; no() { return 1; }; each_since 32760 no no; echo $count"

    assert said(shell, script) == "11"


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize(
    ("program", "left"),
    [
        ("sleep 0.05; exit 3", "nothing"),
        ("sleep 0.05 & wait", "nothing"),
        ("sleep 3 >/dev/null 2>&1 &", "something"),
        ("(sh -c 'sleep 3 & exit' >/dev/null 2>&1 &)", "something"),
    ],
)
def test_who_is_left_of_a_program_that_has_ended_soon_is_found(
    shell: str, program: str, left: str
) -> None:
    """Also a process whose parents have gone."""
    assert said(shell, _STARTED, program) == left


def test_a_program_that_has_run_long_is_looked_for_everywhere() -> None:
    """The pids may have come round meanwhile."""
    script = "clock; S=$((t - 150)); true & P=$!; wait; left_nothing || echo elsewhere"

    assert said("dash", script) == "elsewhere"
