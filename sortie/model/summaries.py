"""What a run leaves for the person who looks at its work."""

from __future__ import annotations

from msgspec import Struct


class RunSummary(Struct, frozen=True, kw_only=True):
    """What an agent said last, and how the git tree in its workspace stands after the run.

    Unknown is None; without a git tree all but ``answer`` is. ``branch`` is None where no branch
    is checked out. ``commits`` counts those of this run, ``files_changed`` the files that it has
    changed, committed or not, and ``uncommitted`` the files that are in no commit as they are.
    ``subjects`` are the first lines of the newest commits and ``git_error`` says why git could
    not be asked. ``pull_request`` is the address of the one that the work is in, and ``opened``
    tells that this run has opened it. These four are given when the run ends, and not recorded.
    """

    answer: str | None = None
    branch: str | None = None
    head_commit: str | None = None
    commits: int | None = None
    files_changed: int | None = None
    uncommitted: int | None = None
    subjects: tuple[str, ...] = ()
    git_error: str | None = None
    pull_request: str | None = None
    opened: bool = False


NO_SUMMARY = RunSummary()
"""The summary of a run of which nothing is known."""
