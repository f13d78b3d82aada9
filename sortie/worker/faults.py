"""What an agent is told that keeps its work from being delivered.

Rule: what a program printed, a reviewer said or a file is called is marked as a text of strangers:
any of them can quote what somebody else has written.
"""

from __future__ import annotations

from msgspec import Struct

from sortie.model import VerificationResult
from sortie.model.outside import OutsideLine, OutsideLog, OutsideText, on_one_line
from sortie.model.reviews import SelfReview
from sortie.workflow.fences import Fence
from sortie.workspaces.git_values import Changes, Leftovers, Moved

NAMED = 20
"""Files that are named to an agent."""


class WorkFault(Struct, frozen=True):
    """Sortie's words and marked texts, one after the other."""

    texts: tuple[str, ...]

    def prompt(self, fence: Fence | None) -> str:
        """Return the prompt by which the agent is sent back to its work."""
        if fence is None:
            return self.message
        prompt_text = ""
        for text in self.texts:
            if not isinstance(text, OutsideText):
                prompt_text += text
            elif isinstance(text, OutsideLine):
                prompt_text += fence.shown(text)
            else:
                prompt_text = f"{prompt_text.rstrip()}\n{fence.shown(text)}"
        return fence.with_head(prompt_text)

    @property
    def message(self) -> str:
        """Return it for people, where the run ends with it."""
        return "".join(map(str.__str__, self.texts))


def about_leftovers(left: Leftovers, *, may: bool) -> WorkFault | None:
    """Say what is wrong with what stands in no commit, None for nothing; ``may``: Sortie commits
    it."""
    if left.large:
        begin = "These files are too large to be committed:\n"
        end = "Remove them, or have git ignore them."
        return WorkFault((begin, *_listed(left.large), end))
    if left.paths and not may:
        end = "Commit what belongs to the work, and remove the rest or have git ignore it."
        return WorkFault(("These files are in no commit:\n", *_listed(left.paths), end))
    return None


def about_size(changes: Changes) -> WorkFault | None:
    """Say that commits hold files that no forge takes, None where they do not."""
    if not changes.large:
        return None
    begin = "These files in your commits are too large to be pushed:\n"
    end = "Take them out of the commits of this branch."
    return WorkFault((begin, *_listed(changes.large), end))


def about_verification(result: VerificationResult) -> WorkFault | None:
    """Say which command has failed, and what it printed; None where all succeeded."""
    if result.ok:
        return None
    failed = result.commands[-1]
    where = "in a clean clone of your commit" if result.where == "clean" else "here"
    ran = f"This command was run {where}, and failed ({failed.status}):\n\n{failed.command}\n\n"
    if not failed.tail.strip():
        return WorkFault((f"{ran}It printed nothing.\n\nMend it.",))
    log = OutsideLog(failed.tail, "the output of a command")
    return WorkFault((f"{ran}The end of its output:\n\n", log, "\n\nMend it."))


def about_review(review: SelfReview) -> WorkFault:
    """Say what a reviewer asks for."""
    commit = review.commit[:12]
    texts = [f"Another agent has reviewed your commit {commit}, and asks for changes:\n"]
    for number, finding in enumerate(review.findings, 1):
        at = OutsideLine(on_one_line(f", {finding.place}" if finding.place else ""), "a place")
        text = OutsideText(finding.text.replace("\n", "\n   "), "a review by another agent")
        texts += [f"\n{number}. {finding.severity.value}", at, ": ", text]
    end = "Mend what is wrong. Where a finding is mistaken, leave the work as it is, and say why."
    return WorkFault((*texts, f"\n\n{end}"))


def about_secret(place: str) -> WorkFault:
    """Say that a secret would be pushed."""
    end = (
        ". Take it out of all of them: rewrite the commits of this branch, as what is pushed can"
        " be read for ever."
    )
    return WorkFault(("A secret stands in your commits, in ", _path(place), end))


def about_push(moved: Moved, branch: str) -> WorkFault:
    """Say that somebody else has pushed to the branch."""
    told = (
        f"Somebody has pushed to {branch} meanwhile ({moved.tip[:12]}). Merge origin/{branch} into"
        " your branch, and solve what conflicts."
    )
    return WorkFault((told,))


def _path(path: str) -> OutsideLine:
    return OutsideLine(on_one_line(path), "the name of a file")


def _listed(paths: tuple[str, ...]) -> list[str]:
    texts = [text for path in paths[:NAMED] for text in ("- ", _path(path), "\n")]
    more = len(paths) - NAMED
    return [*texts, *([f"- and {more} more\n"] if more > 0 else [])]
