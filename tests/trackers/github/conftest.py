"""A GitHub and a tracker of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.trackers.github.opened import GitHub, github_opened


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[GitHub]:
    """An empty repository and its tracker, with the settings of the suite."""
    async with github_opened(tmp_path) as opened:
        yield opened
