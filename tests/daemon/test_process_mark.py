"""When a daemon puts its mark on itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sortie.daemon.locks import Lock

WORKFLOW = """---
tracker: {kind: file, active_states: [Todo], terminal_states: [Done]}
file: {path: issues}
agent: {kind: kiro, command: sortie-kiro-sim}
---
Work.
"""
PROGRAM = """
import resource, sys
from pathlib import Path
from sortie.daemon.locks import HeldElsewhere
from sortie.daemon.process import run_daemon
from sortie.daemon.options import RunOptions

before = resource.getrlimit(resource.RLIMIT_RSS)
try:
    run_daemon(RunOptions(workflow=Path(sys.argv[1]), environ={"HOME": "/nonexistent"}))
except HeldElsewhere:
    print("refused", resource.getrlimit(resource.RLIMIT_RSS) == before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the mark is Linux's")
def test_a_daemon_that_is_refused_carries_no_mark(tmp_path: Path) -> None:
    """Or the one that has the database would take it for something that it has left."""
    (tmp_path / "issues").mkdir()
    workflow = tmp_path / "WORKFLOW.md"
    workflow.write_text(WORKFLOW)
    argv = [sys.executable, "-c", PROGRAM, str(workflow)]

    with Lock(str(tmp_path / ".sortie.db.lock"), "the database") as holder:
        holder.ensure()
        done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("refused True\n", "")
