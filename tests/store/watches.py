"""A watch of a pull request with everything in it that can be."""

from __future__ import annotations

from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    Note,
    PullRequest,
    Review,
    ReviewThread,
)
from sortie.model.watches import (
    Acknowledgement,
    BranchDeletion,
    CheckRerun,
    IssueMove,
    LabelChange,
    PullRequestComment,
    Reaction,
    ReactionKind,
    ThreadReply,
    Watch,
)

REQUEST = PullRequest(
    id="PR_1",
    number=1,
    url="https://forge.example/pulls/1",
    state="open",
    branch="sortie/T-1",
    base="main",
    title="T-1: Mend it",
    head="b" * 40,
)
NOTE = Note(id="7", author="ann", body="Why \ud800 so?")
CHECK = HeadCheck(id="9", name="test", state=CheckState.FAILURE, required=True)


def a_watch() -> Watch:
    """Return one."""
    return Watch(
        pull_request=REQUEST,
        since=1_780_000_000.5,
        causes=("check:b:9", "note:7"),
        runs={ReactionKind.CHECKS: 1, ReactionKind.REVIEW: 2},
        heads=("a" * 40, "b" * 40),
        reruns=("b:test",),
        reaction=Reaction(
            kinds=tuple(ReactionKind),
            causes=("check:b:9", "note:7"),
            head="b" * 40,
            conflicts=True,
            checks=(CHECK,),
            reviews=(Review(id="3", author="ann", state="changes_requested", body="No."),),
            threads=(ReviewThread(id="t", path="a.py", line=3, notes=(NOTE,)),),
            comments=(NOTE,),
            labelled=True,
        ),
        errands=(
            ThreadReply(thread=ReviewThread(id="t", notes=(NOTE,)), body="So.", key="k:t"),
            PullRequestComment(body="So.", key="k"),
            Acknowledgement(note=NOTE),
            LabelChange(add=("needs-human",), remove=("sortie:fix",)),
            CheckRerun(check=CHECK),
            BranchDeletion(),
            IssueMove(state="Done"),
        ),
        merging="b" * 40,
        updated=True,
        exhausted=ReactionKind.CHECKS,
        over="it was merged",
        former=True,
    )
