"""Tell a running daemon what to do: ``refresh``, ``pause``, ``resume``, ``stop`` and ``retry``."""

from __future__ import annotations

from typing import Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.issue_workflow import issue_path, workflow_with
from sortie.cli.output import Format, emit_json, emit_line
from sortie.cli.parameters import WrongUsage, argument


def _issue_name(name: str) -> str:
    if not name.strip():
        raise WrongUsage("needs an issue's identifier", parameter="ISSUE")
    return name


IssueArgument = Annotated[
    str,
    argument(
        metavar="ISSUE",
        help="The issue's identifier, such as DEMO-1, or its id.",
        check=_issue_name,
        completes="issue",
    ),
]


def refresh(
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Have the daemon poll the tracker now instead of at the next interval.

    The command does not wait for the poll.
    """
    _command(source, output, "refresh", "refresh")


def pause(
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Start no run until 'sortie resume', retries included; runs under way go on.

    The pause survives a restart of the daemon.
    """
    _command(source, output, "pause", "pause")


def resume(
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """End a pause: runs are started again."""
    _command(source, output, "resume", "resume")


def stop(
    issue: IssueArgument,
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """End an issue's run or wait, and hold the issue.

    The agent is ended politely and the workspace stays. The hold ends with 'sortie retry ISSUE',
    or when the issue's state changes.
    """
    source = workflow_with(source, issue)
    _command(source, output, f"stop {issue}", f"{issue_path(issue)}/stop")


def retry(
    issue: IssueArgument,
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Make an issue that waits or is held due now, with its attempts counted anew.

    An issue that runs is not touched.
    """
    source = workflow_with(source, issue)
    _command(source, output, f"retry {issue}", f"{issue_path(issue)}/retry")


def _command(source: Source, output: Format, attempt: str, path: str) -> None:
    """Have each workflow that was named do something."""
    from sortie.cli.client import command
    from sortie.cli.discovery import locate

    for name, one in source.each().items():
        answer = command(locate(one), attempt, f"/api/v1/{path}")
        if output is Format.JSON:
            emit_json({"message": answer.message} | ({"workflow": name} if name else {}))
        else:
            emit_line(f"{name}: " * bool(name) + (answer.message or "done"))
