"""``sortie rules``: which rule decides for an issue, and how many issues each rule has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, columns, emit, emit_json, emit_line, one_line
from sortie.cli.parameters import argument
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.daemon.options import RunOptions


def rules(
    issue: Annotated[
        str | None,
        argument(
            metavar="ISSUE",
            help="The issue's identifier, such as DEMO-1, or its id; all rules without one.",
            completes="issue",
        ),
    ] = None,
    source: Source = Source(),
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show which rule decides for an issue, and why those before it do not.

    The settings that the rule changes are shown too. Of an issue that is in no active state it is
    shown which rule would decide if it were. Without an issue, it is shown how many issues each
    rule has. The tracker is asked once; nothing is started or written. A rule that was chosen for
    an issue stays so until the issue is let go of.
    """
    if issue is not None and os.path.exists(issue):
        raise SortieError(
            f"{issue} is taken for an issue; name the workflow file behind one, or with --workflow"
        )
    source.require()
    if issue is None:
        _show_all(source.options(), output)
    else:
        _show_one(source.options(), issue, output)


def _show_one(options: RunOptions, issue: str, output: Format) -> None:
    from sortie.daemon.rule_survey import rule_verdict
    from sortie.daemon.setting_changes import settings_of_a_rule

    found = rule_verdict(options, issue)
    changes = tuple(settings_of_a_rule(found.settings, found.rule or ""))
    if output is Format.JSON:
        emit_json(
            {
                "issue": found.issue.identifier,
                "state": found.issue.state,
                "active": found.active,
                "rule": found.rule or None,
                "passed_over": list(found.passed_over),
                "settings": [
                    {"setting": one.what, "top_level": one.before, "rule": one.after}
                    for one in changes
                ],
                "would": [
                    {"rule": name or None, "states": list(states)} for name, states in found.would
                ],
            }
        )
        return
    about = f"{found.issue.identifier} ({found.issue.state})"
    if found.rule is None:
        emit_line(one_line(f"{about}: no rule decides, as this is no active state"))
        for name, states in found.would:
            emit_line(one_line(f"in {' or '.join(states)}: {_named(name)} would"))
        return
    chosen = "" if found.active else ", as it was chosen when the issue was claimed"
    emit_line(one_line(f"{about}: {_named(found.rule)} decides{chosen}"))
    for line in found.passed_over:
        emit_line(one_line(f"not {line}"))
    for one in changes:
        before = f" instead of {one.before}" if one.before else ""
        emit_line(one_line(f"sets {one.what}: {one.after}{before}"))


def _named(rule: str) -> str:
    return f"rule {rule}" if rule else "the top level of the settings"


def _show_all(options: RunOptions, output: Format) -> None:
    from sortie.cli.tables import Row, table
    from sortie.config.rules import DEFAULT_RULE
    from sortie.daemon.rule_survey import rule_uses

    uses = rule_uses(options)
    if output is Format.JSON:
        emit_json(
            [
                {
                    "rule": one.rule or None,
                    "candidates": one.candidates,
                    "running": one.running,
                    "waiting": one.waiting,
                    "held": one.held,
                }
                for one in uses
            ]
        )
        return
    rows = [
        (
            one.rule or DEFAULT_RULE,
            *map(str, (one.candidates, one.running, one.waiting, one.held)),
        )
        for one in uses
    ]
    names = ("rule", "candidates", "running", "waiting", "held")
    emit(table(names, [Row(cells, "") for cells in rows], columns()))
