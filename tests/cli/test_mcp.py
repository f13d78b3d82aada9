"""``sortie mcp``: it becomes the script of the run, or says that there is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sortie.cli.mcp import mcp
from sortie.model import SortieError


def test_without_a_run_it_says_what_to_do(tmp_path: Path) -> None:
    """One line names the directory."""
    with pytest.raises(SortieError, match=f"under way in {tmp_path}"):
        mcp(tmp_path)


def test_in_a_workspace_it_becomes_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that nothing stands between the client and the run."""
    became: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, argv: became.append((program, argv)))
    script = tmp_path / ".sortie" / "tools" / "connect.sh"
    script.parent.mkdir(parents=True)
    script.touch()

    mcp(tmp_path)

    assert became == [("/bin/sh", ["/bin/sh", str(script)])]
