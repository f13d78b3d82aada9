"""The views of watched pull requests, and what people are told of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from sortie.web.times import Time

STAGES: Mapping[str, str] = {
    "needs_person": "needs a person",
    "reaction": "a run answers it",
    "merging": "being merged",
    "watched": "watched",
    "ending": "over",
}
"""What people are told of a stage."""

CAUSES_SHOWN = 20
"""Causes of reactions that are shown of a pull request, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedView:
    """A pull request that is watched until it is merged or closed; the first ones need a person.

    ``stage`` says who has to do something: a person, as its issue is held or the agent has had all
    its runs; a run that answers what has happened; Sortie or the forge, which merge it; nobody
    before something happens to it; or it is over, and a last thing is done. ``waits_for`` is a
    sentence. ``next_look_at`` is null while the forge is asked. ``runs`` counts reactions by kind
    since somebody else has pushed, ``reaction`` are the kinds that a run answers, and ``exhausted``
    is the kind of which there were enough. ``held`` is the reason of its issue's hold. ``merging``:
    Sortie has begun to merge it; ``queued``: the forge merges it by itself.
    ``rule`` decides for its issue, None is the top level of the settings.
    """

    issue_id: str
    issue_identifier: str
    title: str = ""
    stage: Literal["needs_person", "reaction", "merging", "watched", "ending"]
    number: int
    pull_request: str
    branch: str
    since: Time
    waits_for: str
    next_look_at: Time | None
    runs: Mapping[str, int]
    reaction: tuple[str, ...] = ()
    exhausted: str | None = None
    held: str | None = None
    merging: bool = False
    queued: bool = False
    rule: str | None = None

    @property
    def words(self) -> str:
        """Its stage, for people."""
        if self.stage == "merging":
            return "the forge merges it" if self.queued else STAGES["merging"]
        return STAGES[self.stage]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """A gate as it is told, with a truth value besides its reason."""

    gate: str
    open: bool
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedRunsView:
    """Of a kind of reaction: ``used`` runs of ``most``, which is 0 where the kind is off."""

    kind: str
    used: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchView:
    """A watched pull request with what decides about it: the ``gates`` of its merge, none where
    Sortie does not merge, and the ``runs`` of each kind of reaction. ``answers`` says what the run
    answers that is to come or under way. ``causes`` are the newest of what was answered, or is
    being answered, oldest first; ``causes_omitted`` counts the others.
    """

    standing: WatchedView
    title: str
    head: str | None
    draft: bool
    gates: tuple[GateAnswer, ...]
    runs: tuple[UsedRunsView, ...]
    answers: tuple[str, ...]
    causes: tuple[str, ...]
    causes_omitted: int


def runs_text(view: WatchView) -> str:
    """Say how many runs of each kind were used, of how many."""
    return ", ".join(
        f"{each.kind} {each.used} of {each.most}" if each.most else f"{each.kind} {each.used}"
        for each in view.runs
    )


def cause_text(name: str) -> str:
    """Say what the name of a cause means, such as ``check:HEAD:ID``."""
    kind, _, rest = name.partition(":")
    if kind == "conflicts":
        return f"conflicts at {rest[:12]}"
    if kind == "check":
        head, _, check = rest.partition(":")
        return f"check {check} at {head[:12]}"
    words = {"note": "note in a review", "comment": "comment"}.get(kind, kind)
    return f"{words} {rest}"


def watch_lines(view: WatchView) -> Iterator[str]:
    """Say on a few lines how a watched pull request stands."""
    standing = view.standing
    draft = ", a draft" if view.draft else ""
    yield f"{standing.words}{draft}: {standing.waits_for}"
    if view.answers:
        yield f"a run answers: {', '.join(view.answers)}"
    if view.runs:
        yield f"runs used: {runs_text(view)}"
    if view.causes:
        more = f", and {view.causes_omitted} before" if view.causes_omitted else ""
        yield f"answered: {', '.join(view.causes)}{more}"
