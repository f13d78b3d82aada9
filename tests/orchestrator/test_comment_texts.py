"""What a comment on the end of a run says."""

from __future__ import annotations

import pytest

from sortie.model import (
    ErrorKind,
    Failed,
    Finish,
    Finished,
    IssueId,
    KnownWorkspace,
    RunEnd,
    RunReport,
    RunSummary,
    Spending,
    Stopped,
)
from sortie.orchestrator.comment_texts import COMMENT_ANSWER_LIMIT, comment_on_end

PLACE = KnownWorkspace(issue_id=IssueId("a"), identifier="A", host="box", path="/w/A`1")
DONE = Finished(finish=Finish.REVIEW)
SUBJECTS = ("c0ffee1 Say `hello`", "c0ffee2 Begin")


def test_a_reviewer_learns_what_there_is_to_look_at() -> None:
    """The agent's words, branch, commits and files, and where the workspace is."""
    summary = RunSummary(
        answer="It greets.\n\n- `hello()` is new\n/close",
        branch="task-1",
        head_commit="c0ffee1" + "0" * 33,
        commits=12,
        files_changed=3,
        uncommitted=1,
        subjects=SUBJECTS,
    )
    end = Finished(finish=Finish.REVIEW, reason="look here")
    report = RunReport(end=end, turns=2, spent=Spending(credits=1.5), summary=summary)

    assert (
        comment_on_end(report, PLACE)
        == """\
The run ended after 2 turns, 1.5 credits: the agent asks a person to look at its work: look here

What the agent said last:

> It greets.
>
> - `hello()` is new
> /close

Branch `task-1`, commit c0ffee100000: 12 new commits, 3 files changed, 1 file not committed

- `c0ffee1 Say 'hello'`
- `c0ffee2 Begin`
- and 10 more

Workspace: `/w/A'1` on host box"""
    )


@pytest.mark.parametrize(
    ("summary", "says"),
    [
        (RunSummary(), None),
        (
            RunSummary(git_error="git status: no"),
            "What was done in git is not known: `git status: no`",
        ),
        (
            RunSummary(branch="main", commits=0, files_changed=0, uncommitted=0),
            "Branch `main`: no new commits, no files changed",
        ),
        (
            RunSummary(head_commit="c0ffee", commits=1, files_changed=1, uncommitted=0),
            "No branch is checked out, commit c0ffee: 1 new commit, 1 file changed",
        ),
    ],
)
def test_what_is_said_of_git(summary: RunSummary, says: str | None) -> None:
    """One line, and none where there is no git tree."""
    said = comment_on_end(RunReport(end=DONE, turns=1, summary=summary))

    headline, *rest = said.split("\n\n")
    assert headline == "The run ended after 1 turn: the agent asks a person to look at its work."
    assert rest == ([] if says is None else [says])


@pytest.mark.parametrize(
    ("end", "headline"),
    [
        (
            Failed(kind=ErrorKind.PORT_EXIT, message="boom"),
            "The run failed after 0 turns: port_exit: boom",
        ),
        (Stopped(), "The run was stopped after 0 turns."),
    ],
)
def test_a_run_without_a_turn_has_left_nothing(end: RunEnd, headline: str) -> None:
    """Nobody is sent to a workspace in which nothing was begun."""
    assert comment_on_end(RunReport(end=end), PLACE) == headline


def test_an_answer_is_bounded() -> None:
    """However much the agent said, and no half of a word is left of it."""
    summary = RunSummary(answer="a-secret " * 1000)

    said = comment_on_end(RunReport(end=DONE, turns=1, summary=summary))

    assert len(said) < COMMENT_ANSWER_LIMIT + 200
    quoted = said.partition("> ")[2].split()
    assert set(quoted) <= {"a-secret", "[9000", "characters,", "cut]"}
