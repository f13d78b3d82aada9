"""A process that begins anew, as it leads no more: what it keeps of its former life."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.daemon.options import RunOptions
from sortie.daemon.process import DAEMON_ID, options_of_former_life


def test_the_id_of_the_daemon_is_kept_from_what_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that runs a daemon of its own would else be taken for this one."""
    monkeypatch.setenv(DAEMON_ID, "d-1")
    environ = {"PATH": "/bin", DAEMON_ID: "d-1"}

    daemon_id, options = options_of_former_life(
        RunOptions(workflow=Path("WORKFLOW.md"), environ=environ)
    )

    assert daemon_id == "d-1"
    assert dict(options.environ) == {"PATH": "/bin"}
    assert DAEMON_ID not in os.environ
