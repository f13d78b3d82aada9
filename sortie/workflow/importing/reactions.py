"""What follows from pull requests in Go's program, and how it judges work, as ours say it."""

from __future__ import annotations

from typing import Any

from sortie.documents import Path
from sortie.workflow.importing.draft import Draft

_KINDS = {
    "ci_failure": "checks",
    "review_comments": "review",
    "bot_review": "review",
    "merge_conflicts": "conflicts",
    "auto_merge": "merge",
    "merge_completion": "merged",
    "label_commands": "commands",
}
_KEYS = {
    ("ci_failure", "max_retries"): ("checks", "max_runs"),
    ("ci_failure", "max_log_lines"): ("checks", "max_log_lines"),
    ("review_comments", "max_continuation_turns"): ("review", "max_runs"),
    ("review_comments", "debounce_ms"): ("review", "debounce_ms"),
    ("bot_review", "bot_usernames"): ("review", "bots"),
    ("merge_conflicts", "max_retries"): ("conflicts", "max_runs"),
    ("auto_merge", "strategy"): ("merge", "strategy"),
    ("auto_merge", "delete_branch"): ("merge", "delete_branch"),
    ("merge_completion", "target_state"): ("merged", "state"),
    ("label_commands", "fix_label"): ("commands", "label"),
}
_LOST = {
    "watch_window_ms": "a pull request is watched for reactions.watch_days (14)",
    "triage": "there is no script that decides; reactions.*.from says whose words count",
    "escalation": "the issue is held, and its pull request is labelled needs_human_label",
    "require_ci": "checks that the forge demands are always waited for",
    "review_label": "there is no run that only reviews; self_review does so before the push",
}
_NEEDS = "reactions need tracker.handoff_state: set it, and the reactions by docs/reactions.md"


def import_reactions(draft: Draft) -> None:
    """Write ``reactions``, where there is a handoff state, without which they mean nothing."""
    blocks: dict[Path, str] = {("reactions", kind): kind for kind in draft.block("reactions")}
    if draft.block("ci_feedback"):
        blocks["ci_feedback",] = "ci_failure"
    can_be = draft.old("tracker", "handoff_state") is not None
    intervals: list[int] = []
    for path, kind in blocks.items():
        block = draft.block(*path)
        switch = "kind" if path == ("ci_feedback",) else "provider"
        is_on = bool(block.get(switch)) or kind == "label_commands"
        if kind not in _KINDS or not is_on or not can_be:
            why = _NEEDS if is_on and kind in _KINDS else "it was off there, too"
            draft.lose(path, why if kind in _KINDS else "is no reaction that is known here")
            continue
        ours = _KINDS[kind]
        draft.put(("reactions", ours), {**draft.new.get("reactions", {}).get(ours, {})})
        _defaults(draft, kind, ours)
        why = "the forge follows from repository.url and forge.kind"
        draft.tell_change((*path, switch), f"reactions.{ours}", why)
        for key, value in block.items():
            if to := _KEYS.get((kind, key)):
                _number(draft, (*path, key), ("reactions", *to), value)
            elif key == "poll_interval_ms":
                intervals.append(value)
                draft.tell_change((*path, key), "reactions.interval_ms", "the least one of all")
            elif key == "escalation_label":
                why = "one label for all reactions"
                draft.change((*path, key), ("reactions", "needs_human_label"), value, why)
            elif key != switch:
                draft.lose((*path, key), _LOST.get(key, "each reaction has its max_runs"))
    if intervals and all(isinstance(each, int) for each in intervals):
        draft.put(("reactions", "interval_ms"), max(1000, min(intervals)))


def _defaults(draft: Draft, kind: str, ours: str) -> None:
    """Write the defaults of Go's program that are not ours."""
    if kind == "ci_failure":
        draft.put(("reactions", ours, "max_log_lines"), 50)
    if kind == "merge_conflicts":
        draft.put(("reactions", ours, "max_runs"), 1)


def _number(draft: Draft, at: Path, to: Path, value: Any) -> None:
    if to[-1] == "max_runs" and value == 0:
        draft.change(at, to, 1, "0 is no number of runs here; without its block a reaction is off")
    elif to[-1] == "bots" and not value:
        draft.lose(at, "programs count by name only: list them in reactions.review.bots")
    else:
        draft.change(at, to, value, "")


def import_self_review(draft: Draft) -> None:
    """Write ``verify`` and ``self_review``."""
    block = draft.block("self_review")
    if block.get("enabled") is not True:
        draft.lose(("self_review",), "it was off there, too")
        return
    draft.tell_change(("self_review", "enabled"), "self_review", "the block switches it on")
    rounds = block.get("max_iterations", 3)
    rounds = rounds - 1 if isinstance(rounds, int) else rounds
    for key, to, value, why in (
        ("max_iterations", ("self_review", "rounds"), rounds, "how often the agent is sent back"),
        ("max_diff_bytes", ("self_review", "max_diff_bytes"), 102_400, ""),
        ("verification_commands", ("verify", "commands"), None, "before the review"),
        ("verification_timeout_ms", ("verify", "timeout_ms"), 120_000, ""),
    ):
        given = value if key == "max_iterations" else block.get(key, value)
        if given is not None:
            draft.change(("self_review", key), to, given, why)
    draft.lose(
        ("self_review", "reviewer"), "the agent of the run reviews unless self_review.agent is set"
    )
