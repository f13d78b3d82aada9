"""``sortie rescue``: work that was nowhere else when its workspace was removed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import EnvFile, OutputFormat, Source, WorkflowOption
from sortie.cli.format import utc
from sortie.cli.output import Format, columns, emit, emit_json, emit_line, note
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.daemon.rescued_work import Kept


class RescueAction(StrEnum):
    """What to do with rescued work."""

    LIST = "list"
    SHOW = "show"
    RESTORE = "restore"


def rescue(
    action: Annotated[
        RescueAction, argument(help="List it, show what it changes, or make a branch of it.")
    ],
    issue: Annotated[
        str | None,
        argument(metavar="ISSUE", help="The issue's identifier, such as DEMO-1."),
    ] = None,
    workflow: WorkflowOption = None,
    env_file: EnvFile = None,
    run: Annotated[
        str | None, option(metavar="RUN", help="Of this run; the newest by default.")
    ] = None,
    into: Annotated[
        Path | None,
        option(metavar="DIR", help="The clone that gets the branch; the current directory."),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Look after work that was kept when a workspace was removed.

    Commits on no remote and files in no commit are kept for workspace.keep_rescued_days in the
    mirror of the repository, on the host that the workspace was on. Restored, they are the branch
    rescued/ISSUE-RUN of a clone of the repository.
    """
    from sortie.daemon.rescued_work import rescued_work, restore, shown_work

    source = Source(option=workflow, env_file=env_file)
    source.require()
    options = source.options()
    if action is not RescueAction.LIST and issue is None:
        raise WrongUsage("needs an issue's identifier", parameter="ISSUE")
    kept, faults = rescued_work(options)
    for fault in faults:
        note(f"not asked: {fault}")
    found = [one for one in kept if issue in (None, one.work.issue) and run in (None, one.work.run)]
    if action is RescueAction.LIST:
        _list(found, output)
        return
    if not found:
        raise SortieError(f"nothing of {issue} was rescued; 'sortie rescue list' tells what was")
    if action is RescueAction.SHOW:
        emit(shown_work(options, found[0]))
        return
    branch = f"rescued/{issue}-{found[0].work.run}".replace(" ", "-")
    restore(options, found[0], os.fspath(into or Path()), branch)
    emit_line(f"the branch {branch} is at {found[0].work.commit}")


def _list(found: list[Kept], output: Format) -> None:
    if output is Format.JSON:
        emit_json(
            [
                {
                    "host": one.host,
                    "issue": one.work.issue,
                    "run_id": one.work.run,
                    "commit": one.work.commit,
                    "rescued_at": datetime.fromtimestamp(one.work.at, UTC).isoformat(),
                    "subject": one.work.subject,
                }
                for one in found
            ]
        )
        return
    if not found:
        note("nothing was rescued")
        return
    from sortie.cli.tables import Row, table

    rows = [
        Row(
            [
                utc(datetime.fromtimestamp(one.work.at, UTC)),
                one.work.issue,
                one.work.run,
                one.work.commit[:12],
                one.host,
                one.work.subject,
            ]
        )
        for one in found
    ]
    emit(table(("rescued", "issue", "run", "commit", "host", "subject"), rows, columns()))
