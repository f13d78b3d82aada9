"""A forge of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forges.rig import Rig
from tests.forges.service import KINDS, forge_server
from tests.workspaces.remotes import make_remote


@pytest.fixture(params=KINDS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    """A forge of each kind."""
    yield from _rig(request.param, tmp_path)


@pytest.fixture
def github(tmp_path: Path) -> Iterator[Rig]:
    """GitHub alone."""
    yield from _rig("github", tmp_path)


@pytest.fixture
def gitlab(tmp_path: Path) -> Iterator[Rig]:
    """GitLab alone."""
    yield from _rig("gitlab", tmp_path)


@pytest.fixture
def gitea(tmp_path: Path) -> Iterator[Rig]:
    """Gitea alone."""
    yield from _rig("gitea", tmp_path)


def _rig(kind: str, place: Path) -> Iterator[Rig]:
    bare = make_remote(place)
    with forge_server(kind, bare) as (service, server):
        yield Rig(service, server, place)
        assert server.violations == []
