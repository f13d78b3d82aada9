"""``sortie diff``: what the work on an issue has changed."""

from __future__ import annotations

from typing import Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.operator import IssueArgument
from sortie.cli.output import Format, emit, emit_json, is_terminal, one_line
from sortie.cli.parameters import option
from sortie.model import RunId, SortieError

_ADDED, _REMOVED, _PLACE, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[36m", "\x1b[0m"
_RUNS = 50


def diff(
    issue: IssueArgument,
    source: Source,
    run: Annotated[
        str | None, option(metavar="RUN", help="Of this run; of the newest with one by default.")
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show what the work on an issue changes against its base, whether or not a daemon runs.

    It is what was delivered, or was about to be; what an agent has written since is not in it.
    Above it stand branch, pull request and evidence, which git apply skips.
    """
    from sortie.cli.discovery import locate
    from sortie.cli.issue_workflow import workflow_with
    from sortie.store.readonly import read_diff_of, read_history
    from sortie.web.deliveries import delivery_lines, delivery_view

    place = locate(workflow_with(source, issue))
    rows = [
        row
        for row in read_history(place.database, issue=issue, limit=_RUNS)
        if row.delivery is not None and run in (None, row.run_id)
    ]
    for row in rows:
        text = read_diff_of(place.database, RunId(row.run_id))
        if text is None or row.delivery is None:
            continue
        if output is Format.JSON:
            emit_json({"issue": row.issue, "run_id": row.run_id, "diff": text})
            return
        # Above the first file, as a commit's message is: git apply and patch skip it.
        about = [one_line(line) for line in delivery_lines(delivery_view(row.delivery))]
        emit("".join(f"{line}\n" for line in [*about, "", *map(_painted, text.split("\n"))][:-1]))
        return
    of = f" of run {run}" if run else ""
    raise SortieError(f"no change of {issue}{of} is recorded; 'sortie history -i {issue}' has runs")


def _painted(line: str) -> str:
    """Return a line of a diff in its colour, where the terminal has any; it is harmless then."""
    if not is_terminal():
        return line
    safe = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in line)
    colour = {"+": _ADDED, "-": _REMOVED, "@": _PLACE}.get(safe[:1])
    return f"{colour}{safe}{_PLAIN}" if colour else safe
