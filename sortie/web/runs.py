"""Recorded runs as programs get them, over HTTP and from commands, and what runs tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sortie.model.numbers import counted, rounded
from sortie.model.spending import AMOUNTS
from sortie.model.times import rfc3339
from sortie.store import DayRow, HistoryRow, RuleRow
from sortie.web.deliveries import DeliveryView, delivery_view

DAYS, MOST_DAYS = 14, 366
"""Days of statistics: by default, and at most over HTTP."""

HANDED_OFF = "handed_off"
"""The standing of an issue that was handed off after its last run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run; what is not known is None, never 0. ``issue`` is its identifier.

    ``estimated_usd`` is how much of ``cost_usd`` is reckoned from tokens. ``files_modified`` are
    relative to the workspace, and ``files_omitted`` says that there were more. ``title`` and
    ``description`` are the issue's as the agent got them, the description cut where it is long;
    ``state`` is the issue's as it was last known; ``answer`` is what the agent said last, and
    ``branch`` to ``uncommitted`` are as in RunSummary. Times are RFC 3339 in UTC; a run under way
    has no ``finished_at``, and one after which the issue was not handed off no ``handed_off_at``.
    ``delivery`` is what became of its work, where a repository is set. ``rule`` decided for it,
    None is the top level of the settings. ``image`` is what its container was made of, and
    ``image_digest`` that image's; None without one. ``taken_over`` says from which daemons the run
    was taken over, and in which turns.
    """

    run_id: str
    issue: str
    issue_id: str
    attempt: int
    status: str
    error_kind: str | None
    error: str | None
    turns: int
    credits: float | None
    tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost_usd: float | None
    estimated_usd: float | None
    model: str | None
    files_modified: tuple[str, ...] | None
    files_omitted: bool
    tool_uses: Mapping[str, int] | None
    host: str
    workspace: str | None
    agent: str
    started_at: str
    finished_at: str | None
    title: str | None = None
    description: str | None = None
    state: str | None = None
    answer: str | None = None
    branch: str | None = None
    head_commit: str | None = None
    commits: int | None = None
    files_changed: int | None = None
    uncommitted: int | None = None
    handed_off_at: str | None = None
    delivery: DeliveryView | None = None
    rule: str | None = None
    image: str | None = None
    image_digest: str | None = None
    taken_over: str | None = None


def run_view(row: HistoryRow) -> RunView:
    """Return what a row of history shows."""
    spent = row.spent.rounded()
    return RunView(
        run_id=row.run_id,
        issue=row.issue,
        issue_id=row.issue_id,
        attempt=row.attempt,
        status=row.status.value,
        error_kind=row.error_kind.value if row.error_kind else None,
        error=row.error,
        turns=row.turns,
        credits=spent.credits,
        tokens=row.tokens,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cached_tokens=spent.cached_tokens,
        cost_usd=spent.cost_usd,
        estimated_usd=spent.estimated_usd,
        model=row.activity.model,
        files_modified=row.activity.files_modified,
        files_omitted=row.activity.files_omitted,
        tool_uses=row.activity.tool_uses,
        host=row.host,
        workspace=row.workspace,
        agent=row.agent,
        rule=row.rule or None,
        started_at=rfc3339(row.started_at),
        finished_at=rfc3339(row.finished_at) if row.finished_at else None,
        title=row.title,
        description=row.description,
        state=row.state,
        answer=row.summary.answer,
        branch=row.summary.branch,
        head_commit=row.summary.head_commit,
        commits=row.summary.commits,
        files_changed=row.summary.files_changed,
        uncommitted=row.summary.uncommitted,
        handed_off_at=rfc3339(row.handed_off_at) if row.handed_off_at else None,
        delivery=None if row.delivery is None else delivery_view(row.delivery),
        image=row.image,
        image_digest=row.image_digest,
        taken_over=row.taken_over,
    )


def run_document(view: RunView) -> Mapping[str, object]:
    """Return a run as plain data."""
    document = {field.name: getattr(view, field.name) for field in fields(view)}
    return document | {"delivery": None if view.delivery is None else asdict(view.delivery)}


def past_standing(last: RunView) -> str | None:
    """Return the standing of an issue that is not in hand, by its last run; None: unknown."""
    return None if last.handed_off_at is None else HANDED_OFF


def past_detail(last: RunView) -> str:
    """Say in a sentence how an issue stands that is not in hand, by its last run."""
    state = f" in {last.state}" if last.state else ""
    if last.handed_off_at is not None:
        return f"it was handed off at {_utc(last.handed_off_at)} and was{state or ' moved'} then"
    if last.finished_at is None:
        return f"its last run began at {_utc(last.started_at)}; it is not in hand now"
    return (
        f"it is not in hand; when its last run ended at {_utc(last.finished_at)}, as {last.status},"
        f" it was{state or ' known'}"
    )


def left_in_git(run: RunView) -> str | None:
    """Say how the git tree stood after a run; None where there was none, or it is not known."""
    if run.commits is None:
        return None
    where = f"branch {run.branch}" if run.branch else "no branch"
    commit = f", commit {run.head_commit[:12]}" if run.head_commit else ""
    counts = [
        counted(run.commits, "new commit"),
        f"{counted(run.files_changed or 0, 'file')} changed",
    ]
    if run.uncommitted:
        counts.append(f"{run.uncommitted} not committed")
    return f"{where}{commit}: {', '.join(counts)}"


def image_text(image: str | None, digest: str | None) -> str | None:
    """Return the image of a container with the beginning of its digest; None without one."""
    if image is None:
        return None
    algorithm, _, value = (digest or "").partition(":")
    return f"{image}, {algorithm}:{value[:12]}" if value else image


def _utc(time: str) -> str:
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%SZ")


def usage_day(row: DayRow) -> Mapping[str, str | int | float | None]:
    """Return what one agent did and used on one day; unknown is null."""
    spent = row.spent.rounded()
    return {
        "day": row.day,
        "agent": row.agent,
        "runs": row.runs,
        "turns": row.turns,
        "seconds_running": rounded(row.seconds),
        "tokens": spent.tokens,
        **{name: getattr(spent, name) for name in AMOUNTS},
    }


def usage_rule(row: RuleRow) -> Mapping[str, str | int | float | None]:
    """Return what the runs of one rule did and used; unknown is null, and so is the top level."""
    spent = row.spent.rounded()
    return {
        "rule": row.rule or None,
        "runs": row.runs,
        "turns": row.turns,
        "seconds_running": rounded(row.seconds),
        "tokens": spent.tokens,
        **{name: getattr(spent, name) for name in AMOUNTS},
    }


def usage_day_schema() -> Mapping[str, Any]:
    """Return the JSON schema of ``usage_day``."""
    kinds = {"day": "string", "agent": "string", "runs": "integer", "turns": "integer"}
    kinds["seconds_running"] = "number"
    amounts = {name: {"type": ["number", "null"]} for name in ("tokens", *AMOUNTS)}
    properties = {name: {"type": kind} for name, kind in kinds.items()} | amounts
    return {"type": "object", "required": list(properties), "properties": properties}
