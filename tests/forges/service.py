"""A forge in memory over a bare repository, as each kind shows it, behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.forges.contracts import contract_of
from tests.forges.gitea_face import GiteaFace
from tests.forges.github_checks import LOGS
from tests.forges.github_face import GitHubFace
from tests.forges.gitlab_face import GitLabFace
from tests.forges.hosted import PATH as PATH
from tests.forges.hosted import HostedRepository
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving

TOKEN = "forge-token-7c0ffee-of-a-test"
KINDS = ("github", "gitlab", "gitea")
ONE_KIND = ("github", *(pytest.param(kind, marks=pytest.mark.full) for kind in KINDS[1:]))
"""One kind of forge, and the others with --full: for tests with a whole daemon."""
_FACES = {"github": GitHubFace, "gitlab": GitLabFace, "gitea": GiteaFace}


@dataclass
class ForgeService(HostedRepository):
    """The repository behind the face of its kind."""

    def __post_init__(self) -> None:
        """Put on the face."""
        super().__post_init__()
        self.face = _FACES[self.kind](self)

    def answer(self, request: Received) -> Reply:
        """See Service."""
        self.observe()
        if isinstance(self.face, GitHubFace) and request.path.startswith(LOGS):
            return self.face.log_of(request)
        said = request.headers.get("authorization", "") + request.headers.get("private-token", "")
        if TOKEN not in said:
            return Reply(status=401, body={"message": "Bad credentials"}, sound=False)
        return self.face.answer(request)


@contextmanager
def forge_server(kind: str, bare: Path) -> Iterator[tuple[ForgeService, TestServer]]:
    """Run a forge over a bare repository."""
    service = ForgeService(kind, bare)
    with serving(service, contract_of(kind)) as server:
        yield service, server
