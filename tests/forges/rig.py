"""A forge, its server and its repository, for the tests of what every forge does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sortie.forges import ADAPTERS, Forge, ForgeContext, Proposal
from sortie.model import PullRequest
from sortie.model.git_urls import parse_git_url
from tests.forges.service import PATH, TOKEN, ForgeService
from tests.trackers.server.serving import TestServer
from tests.workspaces.remotes import commit, git

BRANCH = "sortie/T-1"
PROPOSAL = Proposal(
    branch=BRANCH,
    base="main",
    title="T-1: Mend it",
    body="What @ann wanted\n/close\n> said",
    labels=("sortie",),
    reviewers=("ann", "nobody"),
    assignees=("bob",),
)


class Rig:
    """A forge, its server and its repository, with a work tree in which somebody works."""

    def __init__(self, service: ForgeService, server: TestServer, place: Path) -> None:
        self.service = service
        self.server = server
        self.seed = place / "seed"

    @property
    def kind(self) -> str:
        """The kind of the forge."""
        return self.service.kind

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Forge]:
        """Hold the forge open, as in a life of the program."""
        url = parse_git_url(f"{self.server.url}/{PATH}.git")
        context = ForgeContext(url=url, token=TOKEN)
        async with ADAPTERS.load(self.service.kind).open(context) as forge:
            yield forge

    def push(self, branch: str = BRANCH, file: str = "", text: str = "") -> str:
        """Have a branch with a commit at the forge, from its base on or from where it is."""
        git(self.seed, "fetch", "-q", "origin")
        start = f"origin/{branch}"
        if not git(self.seed, "rev-parse", "-q", "--verify", start, ok=False):
            start = "origin/main"
        git(self.seed, "checkout", "-q", "-B", "work", start)
        head = commit(self.seed, file or f"{branch}.txt", text or f"{branch} on {start}\n")
        git(self.seed, "push", "-q", "origin", f"HEAD:{branch}")
        return head

    async def open_one(self, forge: Forge, branch: str = BRANCH) -> PullRequest:
        """Open a pull request of a branch that is pushed."""
        proposal = Proposal(branch=branch, base="main", title=f"Work on {branch}", body="")
        return await forge.open(proposal)
