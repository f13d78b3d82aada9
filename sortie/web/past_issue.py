"""How an issue stands that the daemon does not have in hand, told from its last run; pure."""

from __future__ import annotations

from datetime import datetime

from sortie.web.runs import RunView

HANDED_OFF = "handed_off"
"""The standing of an issue that was handed off after its last run."""


def past_standing(last: RunView) -> str | None:
    """Return the word for how an issue stands; None where it is known of its last run alone."""
    return None if last.handed_off_at is None else HANDED_OFF


def past_detail(last: RunView) -> str:
    """Say in a sentence how an issue stands."""
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
    counts = [f"{run.commits} new commit{'' if run.commits == 1 else 's'}"]
    counts.append(f"{run.files_changed or 0} file{'' if run.files_changed == 1 else 's'} changed")
    if run.uncommitted:
        counts.append(f"{run.uncommitted} not committed")
    return f"{where}{commit}: {', '.join(counts)}"


def _utc(time: str) -> str:
    return datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%SZ")
