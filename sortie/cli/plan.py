"""``sortie plan``: where issues would go, what that may cost, and what other settings change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.format import utc
from sortie.cli.output import Format, Json, columns, emit, emit_json, emit_line, note, one_line
from sortie.cli.parameters import option
from sortie.model.numbers import (
    counted,
    credits_text,
    dollars_text,
    span,
    tokens_text,
    took,
)

if TYPE_CHECKING:
    from sortie.daemon.estimates import Estimate
    from sortie.daemon.past_plan import PastPlan, StartDifference
    from sortie.daemon.plan import BacklogPlan, Comparison, PlannedIssue
    from sortie.daemon.setting_changes import Difference

NO_HISTORY = "no history"


def plan(
    source: Source,
    against: Annotated[
        Path | None,
        option("--against", metavar="FILE", help="Tell what changes with this workflow file."),
    ] = None,
    days: Annotated[
        int | None,
        option(
            "--days",
            "-n",
            least=1,
            most=36_500,
            metavar="N",
            help="Plan the last N days of the event log instead of the backlog.",
        ),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show where issues would go: by which rule, to which agent and host, in which order.

    The tracker is asked once, and nothing is started or written. What a run may cost is the median
    of the recorded runs of the same rule and agent. With --against the settings of another file
    are compared with those in force; with --days that is a model of the recorded days, whose
    limits are told.
    """
    source.require()
    options = source.options()
    if days is not None:
        from sortie.daemon.dry_run import load_quietly
        from sortie.daemon.past_plan import past_plan
        from sortie.daemon.plan import other_workflow

        other = None if against is None else other_workflow(options, against)
        past = past_plan(load_quietly(options), days, other)
        _show_past(past, compared=other is not None, output=output)
        return
    from sortie.daemon.plan import plan as planned

    _show(planned(options, against), output)


def _show(found: BacklogPlan, output: Format) -> None:
    if output is Format.JSON:
        compared = found.comparison
        emit_json(
            {
                "issues": [_issue(one) for one in found.issues],
                "against": None if compared is None else _compared(compared),
            }
        )
        return
    if found.comparison is not None:
        for line in _comparison(found.comparison):
            emit_line(one_line(line))
        return
    if not found.issues:
        note("no issue is in an active state")
        return
    names = ("#", "issue", "rule", "agent", "host", "estimate", "")
    _table(names, [_cells(one) for one in found.issues])
    emit_line("")
    for line in _totals(found.issues):
        emit_line(line)


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> None:
    from sortie.cli.tables import Row, table

    emit(table(names, [Row(tuple(map(one_line, cells)), "") for cells in rows], columns()))


def _cells(one: PlannedIssue) -> tuple[str, ...]:
    what = f"waits: {'; '.join(one.reasons)}" if one.reasons else "would start"
    hosts = one.host or ", ".join(one.hosts)
    place, rule = str(one.place), one.rule or "default"
    return place, one.issue.identifier, rule, one.agent, hosts, _estimate(one.estimate), what


def _estimate(estimate: Estimate | None) -> str:
    if estimate is None:
        return NO_HISTORY
    amounts = [
        took(estimate.seconds) if estimate.seconds is not None else "",
        dollars_text(estimate.cost_usd) if estimate.cost_usd is not None else "",
        credits_text(estimate.credits) if estimate.credits is not None else "",
        tokens_text(estimate.tokens) if estimate.tokens is not None else "",
    ]
    return ", ".join(filter(None, amounts)) + f" (of {counted(estimate.runs, 'run')})"


def _totals(issues: Sequence[PlannedIssue]) -> Iterator[str]:
    """Yield what all issues may take together, and for how many nothing is known."""
    known = [one.estimate for one in issues if one.estimate is not None]
    sums = (
        (took, [e.seconds for e in known if e.seconds is not None]),
        (dollars_text, [e.cost_usd for e in known if e.cost_usd is not None]),
        (credits_text, [e.credits for e in known if e.credits is not None]),
        (tokens_text, [e.tokens for e in known if e.tokens is not None]),
    )
    texts = [text(sum(amounts)) for text, amounts in sums if amounts]
    if texts:
        yield f"one run of each of {counted(len(known), 'issue')}: {', '.join(texts)}"
    if len(known) < len(issues):
        yield f"{NO_HISTORY} for {counted(len(issues) - len(known), 'issue')}"


def _comparison(found: Comparison) -> Iterator[str]:
    yield from found.notes
    if not found.settings and not found.issues:
        yield f"nothing that is planned changes with {found.workflow}"
    for change in found.settings:
        yield f"{change.what}: {change.before or '-'} -> {change.after}"
    for one in found.issues:
        yield f"{one.issue.identifier}: {'; '.join(map(_change, one.differences))}"
    yield f"{counted(len(found.issues), 'issue')} would go another way"


def _change(change: Difference) -> str:
    return f"{change.what} {change.before or '-'} -> {change.after}"


def _show_past(past: PastPlan, *, compared: bool, output: Format) -> None:
    from sortie.daemon.past_plan import LIMITS

    if output is Format.JSON:
        emit_json(_past(past, compared=compared))
        return
    for begin, end in past.covered:
        emit_line(f"recorded: {utc(begin)} to {utc(end)}")
    if not compared:
        names = ("at", "issue", "rule", "agent", "host", "estimate")
        rows = [
            (
                utc(one.at),
                one.issue.identifier,
                one.rule or "default",
                one.agent,
                one.host,
                _estimate(one.estimate),
            )
            for one in past.starts
        ]
        _table(names, rows)
        emit_line(counted(len(past.starts), "run"))
        return
    for change in past.settings:
        emit_line(one_line(f"{change.what}: {change.before or '-'} -> {change.after}"))
    for one in past.differences:
        emit_line(one_line(_started(one)))
    emit_line(f"{counted(len(past.differences), 'run')} of {past.modelled} would differ")
    emit_line(
        f"{LIMITS}; with the settings in force it begins {past.as_recorded} of"
        f" {counted(len(past.starts), 'recorded run')} within a minute of when they began"
    )


def _started(one: StartDifference) -> str:
    parts = [_change(change) for change in one.differences]
    if one.seconds is not None and abs(one.seconds) >= 1:
        parts.append(f"{span(abs(one.seconds))} {'later' if one.seconds > 0 else 'earlier'}")
    number = "" if one.number == 1 else f" (run {one.number})"
    return f"{one.issue.identifier}{number}: {'; '.join(parts)}"


def _issue(one: PlannedIssue) -> Json:
    return {
        "place": one.place,
        "issue": one.issue.identifier,
        "issue_id": one.issue.id,
        "title": one.issue.shown_title,
        "state": one.issue.state,
        "rule": one.rule or None,
        "agent": one.agent,
        "host": one.host,
        "hosts": list(one.hosts),
        "verdict": "wait" if one.reasons else "start",
        "reasons": list(one.reasons),
        "estimate": _json_estimate(one.estimate),
    }


def _json_estimate(estimate: Estimate | None) -> Json:
    if estimate is None:
        return None
    return {
        "runs": estimate.runs,
        "of": estimate.of,
        "seconds": estimate.seconds,
        "cost_usd": estimate.cost_usd,
        "credits": estimate.credits,
        "tokens": estimate.tokens,
    }


def _json_changes(changes: Sequence[Difference]) -> Json:
    return [{"what": one.what, "before": one.before, "after": one.after} for one in changes]


def _compared(found: Comparison) -> Json:
    return {
        "workflow": found.workflow,
        "settings": _json_changes(found.settings),
        "issues": [
            {"issue": one.issue.identifier, "changes": _json_changes(one.differences)}
            for one in found.issues
        ],
        "notes": list(found.notes),
    }


def _past(past: PastPlan, *, compared: bool) -> Json:
    from sortie.daemon.past_plan import LIMITS
    from sortie.model.times import rfc3339

    recorded: dict[str, Json] = {
        "covered": [{"begin": rfc3339(a), "end": rfc3339(b)} for a, b in past.covered],
        "runs": [
            {
                "at": rfc3339(one.at),
                "issue": one.issue.identifier,
                "rule": one.rule or None,
                "agent": one.agent,
                "host": one.host,
                "estimate": _json_estimate(one.estimate),
            }
            for one in past.starts
        ],
    }
    if not compared:
        return {**recorded, "against": None}
    against: dict[str, Json] = {
        "settings": _json_changes(past.settings),
        "runs": [
            {
                "issue": one.issue.identifier,
                "run": one.number,
                "later_seconds": one.seconds,
                "changes": _json_changes(one.differences),
            }
            for one in past.differences
        ],
        "modelled": past.modelled,
        "as_recorded": past.as_recorded,
        "model": LIMITS,
    }
    return {**recorded, "against": against}
