"""``sortie run``: the daemon, or a look at what it would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import DaemonFlags, MaxAgents, Source, Sources
from sortie.cli.output import Format, Json, emit_json, emit_line, note
from sortie.cli.parameters import WrongUsage, option

if TYPE_CHECKING:
    from sortie.daemon.dry_run import CandidateVerdict
    from sortie.daemon.options import RunOptions


def run(
    source: Sources,
    flags: DaemonFlags,
    max_agents: MaxAgents = None,
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

    Several workflow files, or a directory of them, run in one process with one server and shared
    slots; see 'sortie help several-workflows'.
    """
    if output is not None and not dry_run:
        raise WrongUsage("belongs to --dry-run", parameter="--format")
    workflows = source.each()
    for each in workflows.values():
        each.require()
    if "" not in workflows:
        return _run_several(workflows, flags, max_agents, dry_run, output or Format.TEXT)
    if max_agents is not None:
        raise WrongUsage("belongs to several workflows", parameter="--max-agents")
    options = flags.over(source.each()[""].options())
    if dry_run:
        _look(options, output or Format.TEXT)
        return 0
    from sortie.daemon.process import run_daemon

    return run_daemon(options)


def _run_several(
    workflows: Mapping[str, Source],
    flags: DaemonFlags,
    max_agents: int | None,
    dry_run: bool,
    output: Format,
) -> int:
    if dry_run:
        if output is Format.JSON:
            raise WrongUsage("of several workflows is for people", parameter="--format")
        for name, each in workflows.items():
            note(f"{name}:")
            _look(flags.over(each.options()), output)
        return 0
    from sortie.daemon.several.several_process import SeveralOptions, run_several

    common = flags.over(next(iter(workflows.values())).options())
    files = {name: each.workflow for name, each in workflows.items()}
    return run_several(SeveralOptions(common=common, workflows=files, max_agents=max_agents))


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
        "rule": candidate.policy.rule or None,
        "verdict": "wait" if candidate.reasons else "start",
        "reasons": list(candidate.reasons),
    }


def _verdict(candidate: CandidateVerdict) -> str:
    issue = candidate.issue
    verdict = f"waits: {'; '.join(candidate.reasons)}" if candidate.reasons else "would start"
    rule = f" by rule {candidate.policy.rule}" if candidate.policy.rule else ""
    return f"{issue.identifier} ({issue.state}){rule} {verdict}"
