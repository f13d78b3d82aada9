"""What comments on issues say; Markdown, and pure.

Rule: the words of agents and programs stand in quotations, each of a bounded length, so that
readers see whose they are. What a tracker would act on in them is made harmless by its adapter.
"""

from __future__ import annotations

from collections.abc import Iterator

from sortie.model import Failed, Finish, Finished, KnownWorkspace, RunReport, RunSummary, cut
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
}


def comment_on_dispatch(attempt: int, host: str) -> str:
    """Say that work begins; ``attempt`` is what log and history call so."""
    again = f" (attempt {attempt})" if attempt else ""
    return f"Sortie started an agent on this issue{again}, host {host}."


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
    return f"The agent that works on this issue says:\n\n{_quoted(text)}"


def _headline(report: RunReport) -> str:
    turns = f"{report.turns} turn{'' if report.turns == 1 else 's'}"
    spent = "".join(f", {told}" for told in told_amounts(report.spent))
    match report.end:
        case Failed(kind=kind, message=message):
            return f"The run failed after {turns}{spent}: {kind}: {message}"
        case Finished(finish=finish, reason=reason):
            why = f": {reason}" if reason else "."
            return f"The run ended after {turns}{spent}: {_FINISHED[finish]}{why}"
        case _:
            return f"The run was stopped after {turns}{spent}."


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
