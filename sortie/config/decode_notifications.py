"""Decode ``notifications``: a list of targets, each with all its problems."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from sortie.config.blocks import decode_block
from sortie.config.context import DecodeContext
from sortie.config.messages import describe, nearest
from sortie.config.notifications import NotificationTarget, named, target_findings
from sortie.config.report import Report
from sortie.config.settings import Settings
from sortie.documents import Node
from sortie.model import Problem

NOTIFICATIONS_KEY = "notifications"
"""The key of the targets, which are a list."""


def decode_targets(report: Report, context: DecodeContext) -> tuple[NotificationTarget, ...]:
    """Return the targets, all with names; report what is wrong with any, which is left out."""
    node = report.document.at((NOTIFICATIONS_KEY,))
    if node is None or node.value is None:
        return ()
    if not isinstance(node.value, tuple):
        message = f"needs a list of targets, not {describe(node.value)}"
        report.error(node, (NOTIFICATIONS_KEY,), message)
        return ()
    found: list[NotificationTarget] = []
    for at, item in enumerate(node.items()):
        target = _target(at, item, report, context)
        if target is None:
            continue
        if target.name is not None and any(other.name == target.name for other in found):
            key = (NOTIFICATIONS_KEY, at, "name")
            report.error(item.at(("name",)) or item, key, "is the name of an earlier target")
        found.append(target)
    return named(found)


def _target(
    at: int, item: Node, report: Report, context: DecodeContext
) -> NotificationTarget | None:
    if not isinstance(item.value, Mapping):
        message = f"needs a mapping, not {describe(item.value)}"
        report.error(item, (NOTIFICATIONS_KEY, at), message)
        return None
    alone = Report(item)
    target = decode_block((), NotificationTarget, context, alone)
    if isinstance(target, NotificationTarget):
        for finding in target_findings(target):
            if any(alone.is_bad(path) for path in (finding.path, *finding.needs)):
                continue
            node = alone.nearest(finding.because or finding.path)
            tell = alone.error if finding.severity == "error" else alone.warning
            tell(node, finding.path, finding.message)
    for problem in alone.problems:
        key = f"{NOTIFICATIONS_KEY}[{at}].{problem.key}".removesuffix(".")
        report.problems.append(
            Problem(
                path=problem.path,
                line=problem.line,
                column=problem.column,
                key=key,
                message=problem.message,
                severity=problem.severity,
            )
        )
    report.bad |= {(NOTIFICATIONS_KEY, at, *path) for path in alone.bad}
    report.secret_variables += alone.secret_variables
    return target if isinstance(target, NotificationTarget) else None


def rules_of_targets(settings: Settings, rules: Collection[str], node: Node) -> Iterator[Problem]:
    """Yield the rules that targets name and that are none."""
    for at, target in enumerate(settings.notifications):
        for name in target.rules or ():
            if name not in rules:
                item = node.at((at, "rules")) or node
                message = f'"{name}" is no rule; {nearest(name, rules)}'
                yield item.where.problem(f"{NOTIFICATIONS_KEY}[{at}].rules", message)
