"""How the watched pull requests stand, as they are shown: who is needed, and what comes next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from sortie.model import Issue, IssueId
from sortie.model.watches import ReactionKind, Watch
from sortie.scheduler.candidates import GateVerdict
from sortie.scheduler.claims import Claim, Held
from sortie.scheduler.merging import explain_merge
from sortie.scheduler.reactions import most_runs
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_table import Watched


class WatchStage(StrEnum):
    """Who has to do something about a watched pull request, in the order in which they are shown.

    ``needs_person``: its issue is held, the agent has had all its runs, or the forge has refused
    the merge until it was given up; ``reaction``: a run that answers what has happened is to come
    or under way; ``merging``: Sortie or the forge merges it; ``watched``: something has to happen
    to it; ``ending``: it is over, and a last thing is done.
    """

    NEEDS_PERSON = "needs_person"
    REACTION = "reaction"
    MERGING = "merging"
    WATCHED = "watched"
    ENDING = "ending"


_ORDER = {stage: place for place, stage in enumerate(WatchStage)}


class WatchStanding(Struct, frozen=True, kw_only=True):
    """A watched pull request; ``next_at`` (monotonic seconds) is None while the forge is asked.

    ``queued``: the forge merges it by itself. ``held`` is why its issue is held, None where it is
    not. ``rule`` decides for the issue, "" is the top level.
    """

    issue: Issue
    watch: Watch
    stage: WatchStage
    waits_for: str
    next_at: float | None
    queued: bool
    held: str | None
    rule: str = ""


class UsedRuns(Struct, frozen=True, kw_only=True):
    """How many runs of a kind there were, of how many; ``most`` is 0 where the kind is off."""

    kind: ReactionKind
    used: int
    most: int


class WatchExplanation(Struct, frozen=True, kw_only=True):
    """A watched pull request with the gates of its merge, none where Sortie does not merge."""

    standing: WatchStanding
    gates: tuple[GateVerdict, ...]
    runs: tuple[UsedRuns, ...]


def explain_watch(state: SchedulerState, watched: Watched, now: float) -> WatchExplanation:
    """Explain a watched pull request."""
    used, settings = watched.watch.runs, state.policy.reactions
    runs = (
        UsedRuns(kind=kind, used=used.get(kind, 0), most=most_runs(kind, settings))
        for kind in ReactionKind
    )
    return WatchExplanation(
        standing=standing_of(
            watched, state.claims.find(watched.issue.id), state.rule_of(watched.issue)
        ),
        gates=tuple(explain_merge(state, watched, now)),
        runs=tuple(each for each in runs if each.most or each.used),
    )


def standing_of(watched: Watched, claim: Claim | None, rule: str = "") -> WatchStanding:
    """Return how a watched pull request stands, whose issue has this claim and rule."""
    watch, held = watched.watch, claim if isinstance(claim, Held) else None
    queued = watched.seen is not None and watched.seen.queued
    if watch.over is not None:
        stage = WatchStage.ENDING
    elif held is not None or watch.exhausted is not None or watch.refusal in watch.causes:
        stage = WatchStage.NEEDS_PERSON
    elif watch.reaction is not None:
        stage = WatchStage.REACTION
    elif watch.merging is not None or queued:
        stage = WatchStage.MERGING
    else:
        stage = WatchStage.WATCHED
    waits_for = watched.waits_for
    if held is not None and watch.over is None:
        waits_for = f"its issue is held: {held.detail}"
    return WatchStanding(
        issue=watched.issue,
        watch=watch,
        stage=stage,
        waits_for=waits_for,
        next_at=None if watched.token is not None else watched.due_at,
        queued=queued,
        held=None if held is None else held.reason.value,
        rule=rule,
    )


def standings(
    all_watched: Iterable[Watched],
    claims: Mapping[IssueId, Claim],
    rule_of: Callable[[Issue], str] = lambda _: "",
) -> tuple[WatchStanding, ...]:
    """Return how all stand: those that need a person first, of each stage the newest first."""
    found = (standing_of(one, claims.get(one.issue.id), rule_of(one.issue)) for one in all_watched)
    return tuple(sorted(found, key=_urgency))


def _urgency(one: WatchStanding) -> tuple[int, float, int]:
    return _ORDER[one.stage], -one.watch.since, one.watch.pull_request.number
