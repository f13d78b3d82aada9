"""A forge in memory over a bare repository, as each kind shows it, behind a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.forges.gitea_face import GiteaFace
from tests.forges.github_checks import LOGS
from tests.forges.github_face import GitHubFace
from tests.forges.github_graphql import GRAPHQL_PATH, check_question
from tests.forges.gitlab_face import GitLabFace
from tests.forges.hosted import PATH as PATH
from tests.forges.hosted import HostedRepository
from tests.trackers.server.contract import OpenApiContract
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import TestServer, serving

TOKEN = "forge-token-7c0ffee-of-a-test"
KINDS = ("github", "gitlab", "gitea")
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


class GitHubExchanges:
    """Exchanges held to GitHub's description of REST, or to its schema of GraphQL."""

    def __init__(self) -> None:
        description = Path(__file__).with_name("github.openapi.json.gz")
        self._rest = OpenApiContract(description, prefix=GitHubFace.prefix)

    def check_request(self, request: Received) -> None:
        """Raise Violation where a request is not as described."""
        if request.path == GRAPHQL_PATH:
            check_question(request)
        elif not request.path.startswith(LOGS):
            self._rest.check_request(_with_one_ref(request))

    def check_answer(self, request: Received, reply: Reply) -> None:
        """Raise Violation where an answer is not; what is executed by the schema always is."""
        if request.path != GRAPHQL_PATH and not request.path.startswith(LOGS):
            self._rest.check_answer(_with_one_ref(request), reply)


def _with_one_ref(request: Received) -> Received:
    """Return a request in which a ref with slashes is one part of the path, as described."""
    before, word, ref = request.path.partition("/git/refs/")
    return replace(request, path=f"{before}{word}{ref.replace('/', '%2F')}") if word else request


@contextmanager
def forge_server(kind: str, bare: Path) -> Iterator[tuple[ForgeService, TestServer]]:
    """Run a forge over a bare repository."""
    service = ForgeService(kind, bare)
    with serving(service, GitHubExchanges() if kind == "github" else None) as server:
        yield service, server
