"""Webhooks: what is looked at because of deliveries, and how much these are counted on.

Rule 1: a delivery changes nothing but when something is looked at, and looks are the same as ever.
Rule 2: nothing is looked at more often than every SHORTEST_GAP seconds because of deliveries, and
ever less often while they tell nothing new.
Rule 3: deliveries from elsewhere are not taken for a sign that those from here arrive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from sortie import facts
from sortie.model import IssueId, PullRequest
from sortie.model.webhooks import Mention, Part, both_parts
from sortie.scheduler.events import DeliveriesSeen
from sortie.scheduler.polls import TOGETHER, poll_soon
from sortie.scheduler.reconcile import reread
from sortie.scheduler.state import SchedulerState
from sortie.scheduler.watch_table import Watched
from sortie.scheduler.webhook_misses import count_missed, tell_lag
from sortie.scheduler.webhook_scope import repository_of
from sortie.scheduler.webhook_table import SHORTEST_GAP, Subject

_MOST_NAMED = 10_000
"""Names of issues that are remembered from one poll to the next."""


def deliveries_seen(state: SchedulerState, event: DeliveriesSeen, now: float) -> None:
    """Have looked at what deliveries name."""
    if state.draining:
        return
    came = now - event.waited
    scope = state.policy.webhooks
    of_issues = [one for one in event.mentions if scope.has_issues(event.kind, one)]
    if any(one.about_issues for one in of_issues):
        _arrived(state, event.kind, "issues", now)
    names = [name for one in of_issues for name in one.issues]
    overflowed = event.overflowed and event.kind == scope.tracker
    if names or overflowed:
        _wake_issues(state, names, came, now, everything=overflowed)
    every = [policy.webhooks for policy in state.policy.every()]
    of_requests = [
        one
        for one in event.mentions
        if any(scope.has_pull_requests(event.kind, one) for scope in every)
    ]
    if any(one.about_pull_requests for one in of_requests):
        _arrived(state, event.kind, "pull_requests", now)
    _wake_pull_requests(state, event, of_requests, came, now)
    _tell_arrivals(state, now)


def _arrived(state: SchedulerState, kind: str, subject: Subject, now: float) -> None:
    state.webhooks.put(state.webhooks.arrival(kind, subject).came(now))


def _wake_issues(
    state: SchedulerState, names: Sequence[str], came: float, now: float, *, everything: bool
) -> None:
    """Have issues in hand read again, and candidates polled for all others."""
    hooks = state.webhooks
    in_hand: dict[str, IssueId] = {}
    for claim in state.claims.values():
        in_hand[claim.issue.id.casefold()] = claim.issue.id
        in_hand[claim.issue.identifier.casefold()] = claim.issue.id
    is_other_named = everything
    for name in map(str.casefold, names):
        if len(hooks.named) < _MOST_NAMED or name in hooks.named:
            hooks.named[name] = now
        issue_id = in_hand.get(name)
        if issue_id is None:
            is_other_named = True
            continue
        if not hooks.rereads:
            hooks.reread_at = max(now + TOGETHER, hooks.reread_at + SHORTEST_GAP)
        hooks.rereads.setdefault(issue_id, came)
    _clear(state, frozenset(map(str.casefold, names)))
    if is_other_named:
        poll_soon(state, came, now)


def _clear(state: SchedulerState, names: frozenset[str]) -> None:
    """Suspect no change of an issue any more that a delivery has named."""
    suspects = state.webhooks.suspects
    for key, one in list(suspects.items()):
        if one.subject == "issues" and not one.names.isdisjoint(names):
            del suspects[key]


class _Named(Struct):
    """What was named in one repository, by kind and name, with the part that has changed."""

    parts: dict[tuple[str, int | str], Part] = field(default_factory=dict)

    def add(self, mention: Mention) -> None:
        """Take in what deliveries name."""
        keys: list[tuple[str, int | str]] = [("number", each) for each in mention.numbers]
        keys += [("branch", each) for each in mention.branches]
        keys += [("commit", each) for each in mention.commits]
        for key in keys:
            self.parts[key] = both_parts(self.parts.get(key), mention.part)

    def part_of(self, request: PullRequest) -> Part | None:
        """Return what of a pull request has changed, None where it was not named."""
        keys: list[tuple[str, int | str]] = [("number", request.number), ("branch", request.branch)]
        keys.append(("commit", request.head or ""))
        found: Part | None = None
        for key in keys:
            if (part := self.parts.get(key)) is not None:
                found = both_parts(found, part)
        return found

    def has_branch(self, name: str) -> bool:
        """Tell whether a branch was named."""
        return ("branch", name) in self.parts


def _wake_pull_requests(
    state: SchedulerState,
    event: DeliveriesSeen,
    mentions: Sequence[Mention],
    came: float,
    now: float,
) -> None:
    places: dict[str, _Named] = {}
    for mention in mentions:
        for place in mention.places:
            places.setdefault(place, _Named()).add(mention)
    for watched in state.watches.values():
        if state.policy_for(watched.issue).webhooks.forge != event.kind:
            continue
        request = watched.watch.pull_request
        named = places.get(repository_of(request), _Named())
        part = "all" if event.overflowed else named.part_of(request)
        if part is not None:
            state.webhooks.suspects.pop(f"pull_requests {watched.issue.id}", None)
            if watched.named_at is None:
                watched.named_at = came
            watched.part = both_parts(watched.part, part)
            look_soon(state, watched, now)
        elif named.has_branch(request.base):
            # It may conflict with its base now: look as soon as without webhooks, and not for each
            # push to the base.
            longest = state.policy.reactions.longest_interval
            _hasten_look(state, watched, max(now + TOGETHER, watched.looked_at + longest))


def look_soon(state: SchedulerState, watched: Watched, now: float) -> None:
    """Look at a pull request that was named, in so far as nothing else is under way about it."""
    gap = max(watched.looked_at + watched.gap, state.webhooks.looked_at + SHORTEST_GAP)
    _hasten_look(state, watched, max(now + TOGETHER, gap))


def _hasten_look(state: SchedulerState, watched: Watched, at: float) -> None:
    if watched.token is None and not watched.watch.errands and state.policy.reactions.on:
        watched.due_at = min(watched.due_at, max(at, watched.not_before))


def webhooks_wakeup_at(state: SchedulerState) -> float:
    """Return when ``webhooks_due`` next has something to do; inf where nothing is awaited."""
    hooks = state.webhooks
    deadline = min(hooks.deadlines(), default=math.inf)
    if not hooks.rereads or state.reconciling is not None:
        return deadline
    return min(deadline, max(hooks.reread_at, state.tracker_paused_until))


def webhooks_due(state: SchedulerState, now: float) -> None:
    """Read again what was named, count what was missed, and tell how deliveries arrive."""
    _read_again(state, now)
    count_missed(state, now)
    _tell_arrivals(state, now)


def _tell_arrivals(state: SchedulerState, now: float) -> None:
    """Tell where deliveries are counted on, or no more."""
    for one in list(state.webhooks.arrivals.values()):
        counts = one.counts(now)
        if counts != one.told:
            state.webhooks.put(replace(one, told=counts))
            told = facts.WebhooksArriving if counts else facts.WebhooksSilent
            state.out.append(told(kind=one.kind, subject=one.subject))


def _read_again(state: SchedulerState, now: float) -> None:
    hooks = state.webhooks
    if not hooks.rereads or now < max(hooks.reread_at, state.tracker_paused_until):
        return
    came = min(hooks.rereads.values())
    if reread(state, set(hooks.rereads)):
        hooks.rereads.clear()
        hooks.reread_at = now
        tell_lag(state, state.policy.webhooks.tracker, "issues", came, now)
