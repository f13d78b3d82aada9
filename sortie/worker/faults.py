"""What an agent is told that keeps its work from being delivered."""

from __future__ import annotations

from sortie.model import VerificationResult
from sortie.model.reviews import SelfReview
from sortie.workspaces.git_values import Changes, Leftovers, Moved

NAMED = 20
"""Files that are named to an agent."""


def about_leftovers(left: Leftovers, *, may: bool) -> str | None:
    """Say what is wrong with what stands in no commit, None for nothing; ``may``: Sortie commits
    it."""
    if left.large:
        return (
            f"These files are too large to be committed:\n{_listed(left.large)}\n"
            "Remove them, or have git ignore them."
        )
    if left.paths and not may:
        return (
            f"These files are in no commit:\n{_listed(left.paths)}\n"
            "Commit what belongs to the work, and remove the rest or have git ignore it."
        )
    return None


def about_size(changes: Changes) -> str | None:
    """Say that commits hold files that no forge takes, None where they do not."""
    if not changes.large:
        return None
    return (
        f"These files in your commits are too large to be pushed:\n{_listed(changes.large)}\n"
        "Take them out of the commits of this branch."
    )


def about_verification(result: VerificationResult) -> str | None:
    """Say which command has failed, and what it printed; None where all succeeded."""
    if result.ok:
        return None
    failed = result.commands[-1]
    where = "in a clean clone of your commit" if result.where == "clean" else "here"
    return (
        f"This command was run {where}, and failed ({failed.status}):\n\n{failed.command}\n\n"
        f"The end of its output:\n\n{failed.tail}\n\nMend it."
    )


def about_review(review: SelfReview) -> str:
    """Say what a reviewer asks for."""
    lines = []
    for number, finding in enumerate(review.findings, 1):
        at = f", {finding.place}" if finding.place else ""
        text = finding.text.replace("\n", "\n   ")
        lines.append(f"{number}. {finding.severity.value}{at}: {text}")
    listed = "\n".join(lines)
    return (
        f"Another agent has reviewed your commit {review.commit[:12]}, and asks for changes:\n\n"
        f"{listed}\n\n"
        "Mend what is wrong. Where a finding is mistaken, leave the work as it is, and say why."
    )


def about_secret(place: str) -> str:
    """Say that a secret would be pushed."""
    return (
        f"A secret stands in your commits, in {place}. Take it out of all of them: rewrite the"
        " commits of this branch, as what is pushed can be read for ever."
    )


def about_push(moved: Moved, branch: str) -> str:
    """Say that somebody else has pushed to the branch."""
    return (
        f"Somebody has pushed to {branch} meanwhile ({moved.tip[:12]}). Merge origin/{branch} into"
        " your branch, and solve what conflicts."
    )


def _listed(paths: tuple[str, ...]) -> str:
    lines = [f"- {path}" for path in paths[:NAMED]]
    more = len(paths) - NAMED
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])
