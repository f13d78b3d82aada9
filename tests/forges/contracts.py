"""What exchanges with the faces are held to: what the makers of the forges have published."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tests.forges.github_checks import LOGS
from tests.forges.github_face import GitHubFace
from tests.forges.github_graphql import GRAPHQL_PATH, check_question
from tests.forges.gitlab_graphql import GRAPHQL_PATH as GITLAB_GRAPHQL_PATH
from tests.forges.gitlab_graphql import check_merge_request_question
from tests.trackers.gitlab.server import DESCRIPTION as GITLAB
from tests.trackers.server.contract import OpenApiContract
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.serving import Contract


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


_WRONG_TYPES = re.compile(r"/merge_requests(?:/\d+)?$")


class GitLabExchanges:
    """Exchanges held to GitLab's description, as far as that goes.

    It has no merging, no opening and no members; for approvals and logs it knows projects by their
    numbers alone; and it calls labels and truths of a merge request texts.
    """

    def __init__(self) -> None:
        self._rest = OpenApiContract(GITLAB)

    def check_request(self, request: Received) -> None:
        """Raise Violation where a request is not as described."""
        if request.path == GITLAB_GRAPHQL_PATH:
            check_merge_request_question(request)
        elif self._is_described(request):
            self._rest.check_request(request)

    def check_answer(self, request: Received, reply: Reply) -> None:
        """Raise Violation where an answer is not as described."""
        if self._is_described(request) and not _WRONG_TYPES.search(request.path):
            self._rest.check_answer(request, reply)

    def _is_described(self, request: Received) -> bool:
        by_number = request.path.endswith(("/approvals", "/trace"))
        return self._rest.describes(request) and not by_number


def contract_of(kind: str) -> Contract | None:
    """Return what a forge of a kind is held to; Gitea's makers publish nothing apart."""
    if kind == "github":
        return GitHubExchanges()
    return GitLabExchanges() if kind == "gitlab" else None
