"""The gates between a pull request and its merge, in order; one code decides and explains.

A gate answers None where it is open, else a sentence that says why it is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from sortie.config.reactions import MergeReaction
from sortie.model.pull_requests import CheckState, HeadCheck, PullRequestState
from sortie.scheduler.candidates import GateVerdict

OWN_CHECKS = "sortie/"
"""How the names of Sortie's own commit statuses begin."""

NAMED = 5
"""Checks and authors that a sentence names."""


class MergeView(Struct, frozen=True, kw_only=True):
    """What the gates look at. ``head_age`` is for how many seconds this head is known, and only the
    opinions of ``writers`` count; ``busy`` says what Sortie itself does about the issue, and
    ``ahead`` which pull request of the same base is merged before; each is None where there is
    nothing of the kind. ``given_up``: the merge of this head was refused too often."""

    seen: PullRequestState
    settings: MergeReaction
    head_age: float
    writers: frozenset[str] = frozenset()
    busy: str | None = None
    ahead: str | None = None
    given_up: bool = False


def _open(view: MergeView) -> str | None:
    request = view.seen.pull_request
    if request.state != "open":
        return f"it is {request.state}"
    return "it is a draft" if request.draft else None


def _busy(view: MergeView) -> str | None:
    return view.busy


def _conflicts(view: MergeView) -> str | None:
    if view.seen.conflicts is None:
        return "the forge has not computed yet whether it conflicts with its base"
    return "it conflicts with its base" if view.seen.conflicts else None


def demanded(
    checks: Sequence[HeadCheck], names: Sequence[str], *, settled: bool = True
) -> list[HeadCheck]:
    """Return the checks that count: required ones and those of these names; all of them where
    nobody says which, so that what is red is not taken for green. That nobody does is known once
    the head is ``settled``. Sortie's own say nothing new."""
    others = [check for check in checks if not check.name.startswith(OWN_CHECKS)]
    if settled and not names and all(check.required is False for check in others):
        return others
    return [check for check in others if check.required is not False or check.name in names]


def _failed(view: MergeView) -> str | None:
    failed = [check.name for check in _demanded(view) if check.state is CheckState.FAILURE]
    return f"failed: {_listed(failed)}" if failed else None


def _pending(view: MergeView) -> str | None:
    if view.seen.queued or _is_the_forges(view):
        return None
    counted = _demanded(view)
    pending = [check.name for check in counted if check.state is CheckState.PENDING]
    # What is named has to succeed; what else was skipped or cancelled keeps nothing back.
    settled = {one.name for one in view.seen.checks if one.state is CheckState.SUCCESS}.union(
        pending
    )
    pending += [name for name in view.settings.require.checks if name not in settled]
    if pending:
        return f"waited for: {_listed(pending)}"
    if not counted and view.head_age < view.settings.settle:
        return f"no check has begun at this head, which is {view.head_age:.0f} s old"
    return None


def _is_the_forges(view: MergeView) -> bool:
    """Tell whether the forge itself waits for all that is pending."""
    if not view.seen.automatic:
        return False
    pending = [check for check in _demanded(view) if check.state is CheckState.PENDING]
    named = {check.name for check in view.seen.checks if check.required}
    return (
        bool(pending)
        and all(check.required for check in pending)
        and named.issuperset(view.settings.require.checks)
    )


def _demanded(view: MergeView) -> list[HeadCheck]:
    return demanded(view.seen.checks, view.settings.require.checks)


def _approvals(view: MergeView) -> str | None:
    reviews = [one for one in view.seen.reviews if one.author in view.writers and not one.bot]
    against = [one.author for one in reviews if one.state == "changes_requested"]
    if against:
        return f"changes are requested by {_listed(against)}"
    count = sum(1 for review in reviews if review.state == "approved")
    wanted = view.settings.require.approvals
    return f"it has {count} of {wanted} approvals" if count < wanted else None


def _threads(view: MergeView) -> str | None:
    count = sum(1 for thread in view.seen.threads if thread.resolved is False)
    return f"{count} thread{'' if count == 1 else 's'} not resolved" if count else None


def _forge(view: MergeView) -> str | None:
    if view.seen.queued:
        return None
    if view.given_up:
        return "the merge of this head was refused again and again: a person is needed"
    if view.seen.refusal is None or _is_the_forges(view):
        return None
    return f"the forge says: {view.seen.refusal}"


def _train(view: MergeView) -> str | None:
    if view.ahead is None or view.seen.has_queue:
        return None
    return f"{view.ahead} is merged first"


CONFLICTS = "conflicts"
CHECKS_PENDING = "checks pending"
TRAIN = "merge train"

_GATES: tuple[tuple[str, Callable[[MergeView], str | None]], ...] = (
    ("pull request", _open),
    ("issue", _busy),
    (CONFLICTS, _conflicts),
    ("checks failed", _failed),
    ("approvals", _approvals),
    ("threads", _threads),
    (CHECKS_PENDING, _pending),
    ("forge", _forge),
    (TRAIN, _train),
)


def merge_verdicts(view: MergeView) -> Iterator[GateVerdict]:
    """Yield every gate's verdict, in the order in which they decide."""
    for name, gate in _GATES:
        yield GateVerdict(name, gate(view))


def first_closed_for_merge(view: MergeView) -> GateVerdict | None:
    """Return the verdict of the first closed gate, None where all are open."""
    return next((verdict for verdict in merge_verdicts(view) if verdict.reason is not None), None)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    return ", ".join([*names[:NAMED], *([f"{more} more"] if more > 0 else [])])
