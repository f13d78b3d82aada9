"""The port to forges, where branches become pull requests. ADAPTERS finds an adapter by its kind.

Every request raises TrackerError, the error of all services that are asked over HTTP: CONFLICT
where what was to be changed is another one by now, and LostAnswer where a change may have been
made. An adapter neither sleeps nor tries again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Literal, Protocol

from msgspec import Struct

from sortie.adapters import Adapters
from sortie.model import PullRequest, RateBudget
from sortie.model.checks import Check
from sortie.model.git_urls import GitUrl
from sortie.model.hiding import repr_without


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


class CheckState(StrEnum):
    """What a check of a head has come to; ``neutral`` is neither success nor failure."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


class HeadCheck(Struct, frozen=True, kw_only=True):
    """A check of a head by its name; ``required`` is None where the forge does not say."""

    id: str
    name: str
    state: CheckState
    required: bool | None = None
    url: str | None = None


class Review(Struct, frozen=True, kw_only=True):
    """What a person thinks of a pull request."""

    id: str
    author: str
    state: Literal["approved", "changes_requested", "commented", "dismissed"]
    body: str = ""


class ThreadNote(Struct, frozen=True, kw_only=True):
    """One note of a review thread."""

    author: str
    body: str


class ReviewThread(Struct, frozen=True, kw_only=True):
    """Notes about a place of the diff; ``resolved`` is None where the forge does not say."""

    id: str
    path: str | None = None
    line: int | None = None
    resolved: bool | None = None
    outdated: bool = False
    notes: tuple[ThreadNote, ...] = ()


class PullRequestState(Struct, frozen=True, kw_only=True):
    """How a pull request stands. ``conflicts`` is None while the forge computes it."""

    pull_request: PullRequest
    conflicts: bool | None = None
    checks: tuple[HeadCheck, ...] = ()
    reviews: tuple[Review, ...] = ()
    threads: tuple[ReviewThread, ...] = ()


MergeMethod = Literal["merge", "squash", "rebase"]


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

    async def read(self, pull_request: PullRequest) -> PullRequestState:
        """Return how a pull request stands at this moment. Raises NOT_FOUND."""
        ...

    async def set_status(self, status: CommitStatus) -> None:
        """Tell of a commit; what was told under this name before is replaced."""
        ...

    async def comment(self, pull_request: PullRequest, body: str, key: str) -> None:
        """Comment on a pull request, once for a key."""
        ...

    async def reply(self, pull_request: PullRequest, thread: ReviewThread, body: str) -> None:
        """Answer in a review thread."""
        ...

    async def merge(self, pull_request: PullRequest, head: str, method: MergeMethod) -> None:
        """Merge a pull request whose head is this commit.

        Raises CONFLICT where the head is another by now, and INVALID where it cannot be merged.
        """
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
