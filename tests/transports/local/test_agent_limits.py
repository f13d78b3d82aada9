"""Limits of the unit that agents meet first, on files that stand for a hierarchy.

That the kernel obeys them was tried with systemd; see the decision record on limits.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.transports.local import AgentLimits
from sortie.transports.local.agent_limits import KEPT_MEMORY, KEPT_TASKS, LEAF, limit_agents

GIB = 1024**3


class Cgroup:
    """Our own cgroup, one for the commands, and the one into which the daemon moves."""

    def __init__(self, folder: Path) -> None:
        self.own = folder / "sortie.service"
        self.commands = self.own / "sortie-1"
        for directory in (self.own, self.commands, self.own / LEAF):
            directory.mkdir()
            for name in ("cgroup.procs", "cgroup.subtree_control", "memory.max", "pids.max"):
                (directory / name).write_text("max\n")

    def limit(self, memory: str, tasks: str) -> AgentLimits:
        """Have the commands limited where our own limits are these."""
        (self.own / "memory.max").write_text(f"{memory}\n")
        (self.own / "pids.max").write_text(f"{tasks}\n")
        return limit_agents(str(self.own), str(self.commands))

    def holds(self, path: str) -> str:
        """Return what a file begins with; a file is not cut when it is written."""
        return (self.own / path).read_text().split()[0].removesuffix("max")


@pytest.fixture
def cgroup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cgroup:
    """One that was delegated to us."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return Cgroup(tmp_path)


def test_something_is_kept_for_the_daemon(cgroup: Cgroup) -> None:
    """Commands get the limits of the unit less what is kept, and the daemon leaves the cgroup
    whose controllers it enables."""
    limits = cgroup.limit(str(8 * GIB), "4096")

    assert limits == AgentLimits(memory=8 * GIB - KEPT_MEMORY, tasks=4096 - KEPT_TASKS)
    assert cgroup.holds("sortie-1/memory.max") == str(limits.memory)
    assert cgroup.holds("sortie-1/pids.max") == str(limits.tasks)
    assert cgroup.holds(f"{LEAF}/cgroup.procs") == str(os.getpid())
    assert cgroup.holds("cgroup.subtree_control").startswith("+pids")


def test_of_little_a_quarter_is_kept(cgroup: Cgroup) -> None:
    """A small unit leaves most to its agents."""
    assert cgroup.limit(str(GIB), "100") == AgentLimits(memory=GIB - GIB // 4, tasks=75)


def test_what_has_no_limit_is_not_limited(cgroup: Cgroup) -> None:
    """One limit without the other is enough; without any the daemon stays where it is."""
    none = cgroup.limit("max", "max")
    stayed = cgroup.holds(f"{LEAF}/cgroup.procs")
    tasks_only = cgroup.limit("max", "1000")

    assert (none, stayed) == (AgentLimits(), "")
    assert tasks_only == AgentLimits(tasks=750)


def test_a_cgroup_that_was_not_handed_over_is_left_alone(
    cgroup: Cgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root could write anywhere, and heeds the mark that systemd sets; others what they may."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    unmarked = cgroup.limit(str(GIB), "100")
    monkeypatch.setattr(os, "getxattr", lambda _path, name: b"1" if "trusted" in name else b"0")
    marked = cgroup.limit(str(GIB), "100")

    assert unmarked == AgentLimits()
    assert marked != AgentLimits()


def test_where_others_live_the_daemon_goes_back(cgroup: Cgroup) -> None:
    """Controllers are refused to a cgroup that holds processes; then all is as it was."""
    control = cgroup.own / "cgroup.subtree_control"
    control.unlink()
    control.mkdir()  # to write it fails

    assert cgroup.limit(str(GIB), "100") == AgentLimits()
    assert cgroup.holds("cgroup.procs") == str(os.getpid())
