"""``sortie rules``: which rule decides for an issue, and why those before it do not."""

from __future__ import annotations

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.operator import IssueArgument
from sortie.cli.output import Format, emit_json, emit_line, one_line
from sortie.model import SortieError


def rules(issue: IssueArgument, source: Source, output: OutputFormat = Format.TEXT) -> None:
    """Show which rule decides for an issue that is active now, and why those before it do not.

    The tracker is asked once; nothing is started or written. A rule that was chosen for an issue
    stays so until the issue is let go of.
    """
    source.require()
    from sortie.daemon.dry_run import rule_verdicts

    verdicts = rule_verdicts(source.options())
    found = next((one for one in verdicts if issue in (one.issue.identifier, one.issue.id)), None)
    if found is None:
        raise SortieError(f"{issue} is not among the issues in an active state")
    if output is Format.JSON:
        emit_json(
            {
                "issue": found.issue.identifier,
                "state": found.issue.state,
                "rule": found.rule or None,
                "passed_over": list(found.passed_over),
            }
        )
        return
    decides = f"rule {found.rule} decides" if found.rule else "the top level of the settings does"
    emit_line(one_line(f"{found.issue.identifier} ({found.issue.state}): {decides}"))
    for line in found.passed_over:
        emit_line(one_line(f"not {line}"))
