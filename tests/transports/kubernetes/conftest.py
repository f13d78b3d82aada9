"""A cluster for each test, of the stand-in and of a real API server, and a transport to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sortie.transports.kubernetes.transport import KubernetesTransport
from tests.kubernetes_api.api_server import ApiServer
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.real_cluster import RealApi, namespace_of
from tests.kubernetes_api.server import Api, cluster_running

_STAND_IN = "stand-in"
_REAL = pytest.param("real", marks=pytest.mark.full)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Have each test on both, unless it has the server itself fail."""
    if "server" in metafunc.fixturenames:
        spoils = metafunc.definition.get_closest_marker("stand_in") is not None
        metafunc.parametrize("server", [_STAND_IN] if spoils else [_STAND_IN, _REAL], indirect=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> ApiServer | None:
    """Give a real API server, or None for the stand-in."""
    return None if request.param == _STAND_IN else request.getfixturevalue("api_server")


@pytest.fixture
async def api(server: ApiServer | None) -> AsyncIterator[Api | RealApi]:
    """Give a cluster, or the namespace of a real one, which has the same switches."""
    async with cluster_running() if server is None else namespace_of(server) as running:
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
