"""What comments on issues say; Markdown, and pure.

Rule: the words of agents and programs stand in quotations, each of a bounded length, so that
readers see whose they are. What a tracker would act on in them is made harmless by its adapter.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sortie.model import Failed, Finish, Finished, KnownWorkspace, RunReport, RunSummary, cut
from sortie.model.asked_questions import AskedQuestion
from sortie.model.own_comments import ASKS, BEGAN, ENDED, FAILED, SAYS, STOPPED
from sortie.model.spending import told_amounts

COMMENT_ANSWER_LIMIT = 3000
"""Characters of what the agent said last."""

_SHORT_ID = 12

_FINISHED = {
    Finish.TURNS_USED: "it took all its turns",
    Finish.LEFT_ACTIVE: "the issue was moved out of its active states",
    Finish.GONE: "the tracker no longer knows the issue",
    Finish.UNREADABLE: "the tracker could not be asked how the issue stands",
    Finish.DONE: "the agent says that nothing is left to do",
    Finish.REVIEW: "the agent asks a person to look at its work",
    Finish.BLOCKED: "the agent cannot go on without a person",
    Finish.ASKED: "the agent has a question",
}


def comment_on_dispatch(attempt: int, host: str) -> str:
    """Say that work begins; ``attempt`` is what log and history call so."""
    again = f" (attempt {attempt})" if attempt else ""
    return f"{BEGAN}{again}, host {host}."


def comment_on_end(report: RunReport, workspace: KnownWorkspace | None = None) -> str:
    """Say how a run ended, what the agent said last, and where its work is."""
    summary = report.summary
    parts = [_headline(report)]
    if summary.pull_request:
        parts.append(f"Pull request: {summary.pull_request}")
    if summary.answer:
        parts += ["What the agent said last:", _quoted(cut(summary.answer, COMMENT_ANSWER_LIMIT))]
    parts += _git(summary)
    if workspace is not None and report.turns:
        parts.append(f"Workspace: {_code(workspace.path)} on host {workspace.host}")
    return "\n\n".join(parts)


def comment_of_agent(text: str) -> str:
    """Say what an agent wants people to know."""
    return f"{SAYS}\n\n{_quoted(text)}"


def comment_on_question(asked: AskedQuestion, deadline: datetime | None) -> str:
    """Ask a question, and say how it is answered; its first line tells it from all others."""
    question = asked.question
    parts = [f"{ASKS}{asked.mark}:", _quoted(question.text)]
    if question.options:
        parts.append("\n".join(f"{at}. {_code(it)}" for at, it in enumerate(question.options, 1)))
    how = "Answer with a comment on this issue"
    if question.permission is not None:
        how += ": the number or the words of one of these, and nothing else"
    elif question.options:
        how += ": the number of one of these, or in your own words"
    parts.append(f"{how}. The first answer counts; the agent waits for it.")
    if deadline is not None and question.default is not None:
        at = f"{deadline:%Y-%m-%d %H:%M} UTC"
        parts.append(f"If nobody has answered by {at}, this counts: {_code(question.default)}")
    return "\n\n".join(parts)


def _headline(report: RunReport) -> str:
    turns = f"{report.turns} turn{'' if report.turns == 1 else 's'}"
    spent = "".join(f", {told}" for told in told_amounts(report.spent))
    match report.end:
        case Failed(kind=kind, message=message):
            return f"{FAILED}{turns}{spent}: {kind}: {message}"
        case Finished(finish=finish, reason=reason):
            why = f": {reason}" if reason else "."
            return f"{ENDED}{turns}{spent}: {_FINISHED[finish]}{why}"
        case _:
            return f"{STOPPED}{turns}{spent}."


def _git(summary: RunSummary) -> Iterator[str]:
    """Say how the git tree stands, where there is one."""
    if summary.git_error is not None:
        yield f"What was done in git is not known: {_code(summary.git_error)}"
        return
    if summary.commits is None:
        return
    where = f"Branch {_code(summary.branch)}" if summary.branch else "No branch is checked out"
    if summary.head_commit:
        where += f", commit {summary.head_commit[:_SHORT_ID]}"
    counts = [f"{_counted(summary.commits, 'new commit')}"]
    counts.append(f"{_counted(summary.files_changed or 0, 'file')} changed")
    if summary.uncommitted:
        counts.append(f"{_counted(summary.uncommitted, 'file')} not committed")
    yield f"{where}: {', '.join(counts)}"
    if summary.subjects:
        more = summary.commits - len(summary.subjects)
        lines = [f"- {_code(subject)}" for subject in summary.subjects]
        yield "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def _counted(count: int, thing: str) -> str:
    return f"{count or 'no'} {thing}{'' if count == 1 else 's'}"


def _quoted(text: str) -> str:
    """Return a text as a quotation in Markdown."""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _code(text: str) -> str:
    """Return a text on one line as code in Markdown, whatever is in it."""
    return f"`{text.replace('`', chr(39))}`"
