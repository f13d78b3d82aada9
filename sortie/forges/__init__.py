"""The port to forges, where branches become pull requests. ADAPTERS finds an adapter by its kind.

Every request raises TrackerError, the error of all services that are asked over HTTP: CONFLICT
where what was to be changed is another one by now, and LostAnswer where a change may have been
made. An adapter tries nothing again by itself, and waits for nothing but the rebase that GitLab
makes in a job: 8 seconds at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from msgspec import Struct

from sortie.adapters import Adapters
from sortie.model import PullRequest, RateBudget
from sortie.model.checks import Check
from sortie.model.git_urls import GitUrl
from sortie.model.hiding import repr_without
from sortie.model.pull_requests import (
    HeadCheck,
    MergeMethod,
    Note,
    PullRequestState,
    ReviewThread,
)
from sortie.model.webhooks import Part


class GitCredential(Struct, frozen=True, kw_only=True):
    """The name and the secret by which git may fetch and push over HTTPS."""

    username: str
    password: str

    __repr__ = repr_without("password")


class Proposal(Struct, frozen=True, kw_only=True):
    """A pull request as it is to be: ``branch`` is to be merged into ``base``.

    Labels, reviewers and assignees are added by their names; those that the forge does not know
    are told in the log and left out.
    """

    branch: str
    base: str
    title: str
    body: str
    draft: bool = False
    labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()


class CommitState(StrEnum):
    """What a status says of a commit."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"


class CommitStatus(Struct, frozen=True, kw_only=True):
    """What is told of a commit under a name, such as ``sortie/verify``; in a sentence."""

    commit: str
    context: str
    state: CommitState
    sentence: str


NOTHING_CHANGED: Mapping[str, Part] = MappingProxyType({})
"""No part of any pull request."""


class Forge(Protocol):
    """One repository of a forge."""

    async def git_credential(self) -> GitCredential | None:
        """Return what git may use now, for an hour at most; None where there is no credential."""
        ...

    async def find(self, branch: str) -> PullRequest | None:
        """Return the open pull request of a branch of this repository, None where there is none."""
        ...

    async def open(self, proposal: Proposal) -> PullRequest:
        """Open a pull request. Raises CONFLICT where one is open for the branch."""
        ...

    async def update(self, pull_request: PullRequest, proposal: Proposal) -> PullRequest:
        """Bring title and body up to date, and add labels, reviewers and assignees.

        Whether it is a draft is left to people.
        """
        ...

    async def look(
        self,
        pull_requests: Sequence[PullRequest],
        *,
        afresh: bool = False,
        changed: Mapping[str, Part] = NOTHING_CHANGED,
        told: bool = False,
    ) -> Mapping[str, PullRequestState]:
        """Return how pull requests stand, by their ids; what is gone is left out. Raises where
        the repository itself cannot be seen.

        It costs as few requests as the forge allows: what it shows as unchanged is remembered,
        unless ``afresh`` asks for this moment, or a part of one, by its id, is known to have
        ``changed``; for longer where changes are ``told`` by webhooks.
        """
        ...

    async def set_status(self, status: CommitStatus) -> None:
        """Tell of a commit; what was told under this name before is replaced."""
        ...

    async def comment(self, pull_request: PullRequest, body: str, key: str) -> None:
        """Comment on a pull request, once for a key."""
        ...

    async def reply(
        self, pull_request: PullRequest, thread: ReviewThread, body: str, key: str
    ) -> None:
        """Answer in a review thread, once for a key."""
        ...

    async def acknowledge(self, pull_request: PullRequest, note: Note) -> None:
        """Show the author of a comment by a reaction on it that it was seen; again is no error."""
        ...

    async def label(
        self, pull_request: PullRequest, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> None:
        """Add and remove labels by name; one that the repository does not have is left out."""
        ...

    async def may_write(self, user: str) -> bool:
        """Tell whether somebody may push to the repository; False for who is unknown."""
        ...

    async def check_log(self, check: HeadCheck, lines: int) -> str:
        """Return annotations and the last lines of the log of a failed check, as text without
        escape sequences; "" where the forge has none. What it holds was written by anybody."""
        ...

    async def rerun(self, check: HeadCheck) -> bool:
        """Have a check made again; False where the forge cannot do that."""
        ...

    async def bring_up_to_date(self, pull_request: PullRequest, head: str) -> bool:
        """Have the forge bring its base into the branch where that is behind, which makes a new
        head; False where nothing was to be done.

        Raises CONFLICT where the head is another by now, INVALID where it cannot be done.
        """
        ...

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit.

        Raises CONFLICT where the head is another by now, and INVALID where it cannot be merged.
        """
        ...

    async def merge_when_ready(
        self, pull_request: PullRequest, head: str, method: MergeMethod
    ) -> None:
        """Have the forge merge it by itself, or queue it, once all that it demands is there.

        Raises CONFLICT where the head is another by now, and INVALID where it will not.
        """
        ...

    async def cancel_merge(self, pull_request: PullRequest) -> None:
        """Have the forge no longer merge it by itself; where it would not, that is no error."""
        ...

    async def delete_branch(self, branch: str) -> None:
        """Delete a branch of the repository; one that is not there is no error."""
        ...

    def budgets(self) -> Sequence[RateBudget]:
        """Return at once what the last answers said of the forge's limits."""
        ...

    def checks(self) -> Sequence[Check]:
        """Return what ``sortie doctor`` asks, as a tracker's: each changes nothing."""
        ...


class ForgeContext(Struct, frozen=True, kw_only=True):
    """What an adapter is made from: where the repository is, and with which token.

    ``app`` are the numbers of a GitHub App and of its installation, whose key the token is then.
    ``endpoint`` is the address of the API, None for that of the URL's host.
    """

    url: GitUrl
    token: str
    endpoint: str | None = None
    app: tuple[int, int | None] | None = None
    progress: Callable[[], object] = lambda: None

    __repr__ = repr_without("token")


class ForgeAdapter(Struct, frozen=True, kw_only=True):
    """What an adapter's folder offers.

    ``open`` is entered once and left at the end; it makes no request, and raises TrackerError
    (INVALID) where the settings cannot be used.
    """

    kind: str
    open: Callable[[ForgeContext], AbstractAsyncContextManager[Forge]]


ADAPTERS = Adapters(__name__, ForgeAdapter)
