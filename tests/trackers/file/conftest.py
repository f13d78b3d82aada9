"""A directory for issues, and a memory of when they were seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trackers.file.folders import Memory


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "issues"
    path.mkdir()
    return path
