"""GitLab's test server: the service behind sockets, held to GitLab's published description."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.trackers.gitlab.service import GitLabService
from tests.trackers.server.contract import OpenApiContract
from tests.trackers.server.serving import TestServer, serving

DESCRIPTION = Path(__file__).with_name("gitlab.openapi.json.gz")


@contextmanager
def gitlab(
    service: GitLabService | None = None, *, prefix: str = "", certificate: Path | None = None
) -> Iterator[tuple[GitLabService, TestServer]]:
    """Run GitLab on a free port, below ``prefix``; every exchange has to be as described."""
    service = service or GitLabService()
    service.prefix = prefix
    contract = OpenApiContract(DESCRIPTION, prefix=prefix)
    with serving(service, contract, certificate) as server:
        service.clock = server.now
        yield service, server
