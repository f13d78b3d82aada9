"""A cluster for each test, and a transport to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sortie.transports.kubernetes.transport import KubernetesTransport
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api, cluster_running


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """Give a cluster."""
    async with cluster_running() as running:
        yield running


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Give the directory where volumes are mounted."""
    return tmp_path / "workspaces"


@pytest.fixture
async def transport(api: Api, tmp_path: Path, root: Path) -> AsyncIterator[KubernetesTransport]:
    """Give a transport whose pods have claims."""
    async with pods_of(api, tmp_path, root, start_timeout_ms=20_000) as made:
        yield made
