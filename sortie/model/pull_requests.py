"""Pull requests as a forge shows them, and how they stand; GitLab says merge request."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec import Struct


class PullRequest(Struct, frozen=True, kw_only=True):
    """A pull request of a forge.

    ``id`` is the forge's own and stays where a repository is renamed; ``number`` is what people
    use. ``head`` is the commit of its branch, as far as the forge has seen it.
    """

    id: str
    number: int
    url: str
    state: Literal["open", "merged", "closed"]
    branch: str
    base: str
    title: str
    body: str = ""
    head: str | None = None
    draft: bool = False

    @property
    def place(self) -> str:
        """What tells the pull requests of its repository from those of others."""
        return self.url.rpartition("/")[0]


class CheckState(StrEnum):
    """What a check of a head has come to; ``neutral`` is neither success nor failure: skipped,
    cancelled or superseded."""

    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


class HeadCheck(Struct, frozen=True, kw_only=True):
    """A check of a head by its name; ``required`` is None where the forge does not say. A check
    that is demanded and not there yet is pending, with the id ``expected:NAME``."""

    id: str
    name: str
    state: CheckState
    required: bool | None = None
    url: str | None = None


class Note(Struct, frozen=True, kw_only=True):
    """What somebody has written: a comment, or a part of a review thread. ``bot`` tells that the
    forge says that the author is a program, and ``own`` that Sortie has written it."""

    id: str
    author: str
    body: str
    bot: bool = False
    own: bool = False


class Review(Struct, frozen=True, kw_only=True):
    """What somebody thinks of a pull request, by their newest opinion; ``head`` is the commit that
    they have seen, None where the forge does not say."""

    id: str
    author: str
    state: Literal["approved", "changes_requested", "commented", "dismissed"]
    body: str = ""
    bot: bool = False
    head: str | None = None


class ReviewThread(Struct, frozen=True, kw_only=True):
    """Notes about a place of the diff; ``resolved`` is None where the forge does not say."""

    id: str
    path: str | None = None
    line: int | None = None
    resolved: bool | None = None
    outdated: bool = False
    notes: tuple[Note, ...] = ()


class PullRequestState(Struct, frozen=True, kw_only=True):
    """How a pull request stands.

    ``conflicts`` is None while the forge computes it. ``refusal`` is why the forge would refuse to
    merge it now, in its own words, None where it would not or does not say. ``automatic``: the
    forge itself merges it once all is well, if it is told to; ``queued``: it was told so. Neither
    is so, and it is no refusal, while the branch has to be brought up to date before: the forge
    would wait for that for ever. ``has_queue``: the forge merges by a queue, which checks each
    together with those before it.
    """

    pull_request: PullRequest
    conflicts: bool | None = None
    checks: tuple[HeadCheck, ...] = ()
    reviews: tuple[Review, ...] = ()
    threads: tuple[ReviewThread, ...] = ()
    comments: tuple[Note, ...] = ()
    labels: tuple[str, ...] = ()
    refusal: str | None = None
    automatic: bool = False
    queued: bool = False
    has_queue: bool = False


MergeMethod = Literal["merge", "squash", "rebase"]
