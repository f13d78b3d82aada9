"""``sortie run``: the daemon, or a look at what it would do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import DaemonFlags, Source
from sortie.cli.output import Format, Json, emit_json, emit_line, note
from sortie.cli.parameters import WrongUsage, option

if TYPE_CHECKING:
    from sortie.daemon.dry_run import CandidateVerdict
    from sortie.daemon.options import RunOptions


def run(
    source: Source,
    flags: DaemonFlags,
    dry_run: Annotated[
        bool,
        option(
            "--dry-run",
            help="Poll once, print a verdict on each candidate, start nothing.",
        ),
    ] = False,
    output: Annotated[
        Format | None,
        option("--format", "-f", help="Print the dry run for people or for programs."),
    ] = None,
) -> int:
    """Work on the tracker's issues until stopped.

    Logs go to stderr. The first SIGINT or SIGTERM ends the runs under way politely; they continue
    at the next start. A second one leaves at once. SIGHUP reads the workflow file again, which
    also happens whenever it changes.
    """
    if output is not None and not dry_run:
        raise WrongUsage("belongs to --dry-run", parameter="--format")
    source.require()
    options = flags.over(source.options())
    if dry_run:
        _look(options, output or Format.TEXT)
        return 0
    from sortie.daemon.process import run_daemon

    return run_daemon(options)


def _look(options: RunOptions, output: Format) -> None:
    from sortie.daemon.dry_run import dry_run

    candidates = dry_run(options)
    if output is Format.JSON:
        emit_json([_row(candidate) for candidate in candidates])
        return
    for candidate in candidates:
        emit_line(_verdict(candidate))
    if not candidates:
        note("no issue is in an active state")


def _row(candidate: CandidateVerdict) -> Json:
    issue = candidate.issue
    return {
        "issue": issue.identifier,
        "issue_id": issue.id,
        "title": issue.shown_title,
        "state": issue.state,
        "priority": issue.priority,
        "verdict": "wait" if candidate.reasons else "start",
        "reasons": list(candidate.reasons),
    }


def _verdict(candidate: CandidateVerdict) -> str:
    issue = candidate.issue
    verdict = f"waits: {'; '.join(candidate.reasons)}" if candidate.reasons else "would start"
    return f"{issue.identifier} ({issue.state}) {verdict}"
