"""Outages, limits, hostile texts, and what a tracker tells of itself."""

from __future__ import annotations

import trio
import trio.testing
from msgspec.structs import replace

from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.checks import CheckOutcome
from sortie.testing.checks import require, require_equal
from sortie.testing.tracker.rig import (
    Rig,
    as_kept,
    as_listed,
    check,
    each_refused,
    make_issue,
    needs,
    read_one,
    text_of,
    without_ids,
)
from sortie.trackers import Capability

_HOSTILE = (
    "../x",
    "{{ 7*7 }}",
    "..",
    "-rf",
    "a/../../b",
    "$(reboot)",
    "%s %n",
    "<b>x</b>",
    "yes",
    "~",
    "1e3",
)

_OUTAGES = (TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED)


@check("outage.all-requests", "during an outage every request fails; none gives an empty answer")
async def outage(rig: Rig) -> None:
    """The error is about the tracker and no issue; afterwards all works."""
    rig.put(make_issue("A-1"))
    rig.fail()

    await each_refused(rig, *_OUTAGES)
    rig.recover()
    after = await rig.tracker.fetch_candidates(["todo"])

    require_equal(
        list(map(without_ids, after)),
        [as_listed(rig, make_issue("A-1"))],
        "the list after the outage",
    )


@check("outage.pause", "where a tracker asks for a pause the error has its seconds")
async def pause(rig: Rig) -> None:
    """Every refusal is UNAVAILABLE, which passes."""
    needs(rig, Capability.RATE_LIMITS)
    rig.put(make_issue("A-1"))
    rig.limit(17)

    errors = await each_refused(rig, TrackerErrorKind.UNAVAILABLE)
    rig.recover()

    require_equal([error.retry_after for error in errors], [17.0] * 5, "retry_after")
    require_equal(len(await rig.tracker.fetch_candidates(["todo"])), 1, "issues after the pause")


@check("doctor.passes", "the checks of sortie doctor pass where all is well, and change nothing")
async def doctor(rig: Rig) -> None:
    """They have names of their own and need only checks before them."""
    rig.put(make_issue("A-1"))
    before = await read_one(rig, "A-1")

    names: list[str] = []
    for asked in rig.tracker.checks():
        require(set(asked.needs) <= set(names), f"{asked.name} needs a check that is not before it")
        found = await asked.ask()
        require(found.outcome is CheckOutcome.OK and found.sentence, f"{asked.name}: {found}")
        names.append(asked.name)

    require(names and len(set(names)) == len(names), f"the checks are called {names}")
    require_equal(await read_one(rig, "A-1"), before, "the issue after the checks")


@check("doctor.outage", "the first check of sortie doctor fails during an outage")
async def doctor_in_outage(rig: Rig) -> None:
    """It says so as a result or as a TrackerError."""
    rig.put(make_issue("A-1"))
    rig.fail()

    first = rig.tracker.checks()[0]
    try:
        outcome = (await first.ask()).outcome
    except TrackerError:
        outcome = CheckOutcome.FAILED

    require_equal(outcome, CheckOutcome.FAILED, f"the outcome of {first.name}")


@check("budget.sense", "budgets are given at once, each with a name of its own")
async def budgets(rig: Rig) -> None:
    """No more is left than the limit, until an aware time."""
    rig.put(make_issue("A-1"))
    await rig.tracker.fetch_candidates(["todo"])

    given = rig.tracker.budgets()

    require(len({budget.name for budget in given}) == len(given), f"two have one name: {given}")
    for budget in given:
        if budget.limit is not None and budget.remaining is not None:
            require(0 <= budget.remaining <= budget.limit, f"{budget} makes no sense")
        aware = budget.resets_at is None or budget.resets_at.tzinfo is not None
        require(aware, f"{budget} has a time without a zone")


@check("change.waits", "changed() waits for a change, and returns at one made before it was called")
async def changes(rig: Rig) -> None:
    """The second call waits for the second change."""
    needs(rig, Capability.CHANGES)
    returned = trio.Event()

    async def listen() -> None:
        await rig.tracker.changed()
        returned.set()

    rig.put(make_issue("A-0"))
    await rig.tracker.changed()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked(0.2)
        early = returned.is_set()
        rig.put(make_issue("A-1"))
        await returned.wait()

    require(not early, "changed() returned before there was a change")


@check("hostile.texts", "identifiers, titles and comments that are made to escape stay texts")
async def hostile_texts(rig: Rig) -> None:
    """They are passed on as what they say."""
    issues = [make_issue(word, title=word, description=word) for word in _HOSTILE]
    for issue in issues:
        rig.put(issue)

    candidates = await rig.tracker.fetch_candidates(["todo"])
    found = {issue.id: without_ids(issue) for issue in candidates}
    require_equal(found, {issue.id: as_listed(rig, issue) for issue in issues}, "the list")
    for issue in issues:
        moved = await rig.tracker.transition(issue, "Done")
        await rig.tracker.comment(moved, issue.title)
        read = await read_one(rig, issue.id)

        bodies = [comment.body for comment in read.comments]
        require_equal(bodies, [text_of(rig, issue.title)], "the comments")
        changed = as_kept(rig, replace(issue, state="Done"))
        same = replace(without_ids(read), comments=(), updated_at=changed.updated_at)
        require_equal(same, changed, "the moved issue")


@check("hostile.states", "states and labels that are made to escape stay texts")
async def hostile_states(rig: Rig) -> None:
    """They are words like any others where a tracker takes any word."""
    needs(rig, Capability.FREE_STATES, Capability.LABELS)
    for number, hostile in enumerate(_HOSTILE):
        issue = make_issue(f"A-{number}", labels=(hostile,))
        rig.put(issue)

        moved = await rig.tracker.transition(issue, hostile)

        require_equal((moved.state, moved.labels), (hostile, (hostile,)), "state and labels")
