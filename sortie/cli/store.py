"""``sortie store``: what is done to the recorded rows while no daemon runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from sortie.cli.arguments import EnvFile, OutputFormat, Source, WorkflowOption
from sortie.cli.output import Format, emit_json, emit_line, note, one_line
from sortie.cli.parameters import WrongUsage, argument, option


class StoreAction(StrEnum):
    """What to do with the rows."""

    COPY = "copy"
    PURGE = "purge"


class CopyTarget(StrEnum):
    """Where rows go."""

    SERVER = "server"
    FILE = "file"


def store(
    action: Annotated[StoreAction, argument(help="Copy all rows, or forget those of an issue.")],
    issue: Annotated[
        str | None,
        argument(metavar="ISSUE", help="The issue to forget: its identifier or its id."),
    ] = None,
    workflow: WorkflowOption = None,
    env_file: EnvFile = None,
    to: Annotated[
        CopyTarget | None,
        option(help="Where copied rows go: from the file of db_path to store.url, or back."),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Copy what is recorded to another database, or forget an issue; no daemon may run.

    With copy, rows go from the file of db_path to the server of store.url, or back: all of them,
    which are counted, or none. What they go to must have none. Which of the two a daemon uses is
    what the workflow file says: with store.url it is the server.

    With purge, all that is recorded of an issue is deleted, with its transcripts; sums over all
    issues stay. Its workspaces are named, for you to remove. The event log may tell of it for
    journal.keep_days. An issue that is still active in its tracker is new to the next daemon.
    """
    source = Source(option=workflow, env_file=env_file)
    source.require()
    if action is StoreAction.COPY:
        if to is None or issue is not None:
            raise WrongUsage("copy needs --to server or --to file, and no issue", parameter="--to")
        _copy(source, to, output)
    else:
        if issue is None or to is not None:
            raise WrongUsage("purge needs an issue, and no --to", parameter="ISSUE")
        _purge(source, issue, output)


def _copy(source: Source, to: CopyTarget, output: Format) -> None:
    from sortie.daemon.store_upkeep import copy_store

    copied = copy_store(source.options(), to_server=to is CopyTarget.SERVER)
    if output is Format.JSON:
        emit_json({"source": copied.source, "target": copied.target, "rows": dict(copied.rows)})
        return
    emit_line(
        f"copied {sum(copied.rows.values())} rows, {copied.rows['runs']} runs among them, from the"
        f" database {copied.source} to {copied.target}"
    )
    if to is CopyTarget.FILE:
        note("a daemon uses the server as long as the workflow file has store.url")


def _purge(source: Source, issue: str, output: Format) -> None:
    from sortie.daemon.store_upkeep import purge

    purged = purge(source.options(), issue)
    if output is Format.JSON:
        places = [{"host": host, "path": path} for host, path in purged.workspaces]
        emit_json({"issue": issue, "runs": list(purged.runs), "workspaces": places})
        return
    emit_line(f"forgot {one_line(issue)}, with {len(purged.runs)} runs")
    for host, path in purged.workspaces:
        note(f"its workspace is left for you to remove, on {one_line(host)}: {one_line(path)}")
