"""``sortie answer``: answer the question of an agent."""

from __future__ import annotations

from typing import Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.issue_workflow import issue_path, workflow_with
from sortie.cli.operator import IssueArgument
from sortie.cli.output import Format, emit_json, emit_line
from sortie.cli.parameters import WrongUsage, argument


def _answer_text(text: str) -> str:
    if not text.strip():
        raise WrongUsage("needs an answer", parameter="TEXT")
    return text


AnswerArgument = Annotated[
    str,
    argument(
        metavar="TEXT",
        help="The answer: the number or the words of an option, or your own words.",
        check=_answer_text,
    ),
]


def answer(
    issue: IssueArgument,
    text: AnswerArgument,
    source: Source,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Answer the question for which an issue is held; its agent goes on with the answer.

    The first answer counts, whether it is given here, on the dashboard or as a comment on the
    issue. 'sortie explain ISSUE' shows the question.
    """
    from sortie.cli.client import command
    from sortie.cli.discovery import locate

    place = locate(workflow_with(source, issue))
    path = f"/api/v1/{issue_path(issue)}/answer"
    told = command(place, f"answer {issue}", path, {"text": text, "by": _login()})
    if output is Format.JSON:
        emit_json({"message": told.message})
    else:
        emit_line(told.message or "done")


def _login() -> str:
    """Return the name under which somebody is logged in, "" where that is not known."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
