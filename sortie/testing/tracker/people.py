"""What a tracker tells of people: their rights, and who has put a label on an issue."""

from __future__ import annotations

from datetime import timedelta

from sortie.model import Issue, TrackerErrorKind
from sortie.model.trust import TRUST_LABEL, Endorsement
from sortie.testing.checks import NotTried, require, require_equal
from sortie.testing.tracker.rig import (
    THEN,
    Rig,
    RulesPeople,
    check,
    make_issue,
    read_one,
    refusal,
)
from sortie.trackers import TellsOfPeople

_HOUR = timedelta(hours=1)


def _people(rig: Rig) -> tuple[RulesPeople, TellsOfPeople]:
    if not isinstance(rig, RulesPeople) or not isinstance(rig.tracker, TellsOfPeople):
        raise NotTried("its rig has no people")
    return rig, rig.tracker


async def _id_of(rig: Rig, author: str) -> str:
    """Return the id of somebody, who is known by an issue."""
    rig.put(make_issue(f"by-{author}", author=author))
    found = (await read_one(rig, f"by-{author}")).author_id
    assert found is not None
    return found


@check("people.rights", "who has a right has it, and nobody else")
async def rights(rig: Rig) -> None:
    """Somebody whose name is the beginning of another's is another one."""
    people, tracker = _people(rig)
    ann, mallory = await _id_of(rig, "ann"), await _id_of(rig, "an")

    for right in sorted(people.rights):
        people.grant("ann", right)
        found = [await tracker.may(one, right) for one in (ann, mallory)]
        require_equal(found, [True, False], f"who has the right {right}")
    people.grant("ann", None)
    left = [await tracker.may(ann, right) for right in sorted(people.rights)]
    require(not any(left), "who has no right any more still has one")


@check("people.refused", "where the key may not ask about people that is an error of its own")
async def refused(rig: Rig) -> None:
    """It is no answer about anybody, and none about the tracker."""
    people, tracker = _people(rig)
    ann = await _id_of(rig, "ann")
    people.refuse_people()

    for right in sorted(people.rights):
        await refusal(tracker.may(ann, right), f"may {right}", TrackerErrorKind.PERMISSION)


async def _endorsement(rig: Rig, issue: Issue) -> Endorsement | None:
    _, tracker = _people(rig)
    return await tracker.endorsement(issue, TRUST_LABEL)


@check("people.label", "who has put a label on an issue is told, with the edits since")
async def label(rig: Rig) -> None:
    """The last one counts; a label that was taken off is none, and another one is another."""
    people, _ = _people(rig)
    ann, bob = await _id_of(rig, "ann"), await _id_of(rig, "bob")
    rig.put(make_issue("A-1", labels=(TRUST_LABEL, "other"), author="bob"))
    issue = await read_one(rig, "A-1")

    none = await _endorsement(rig, issue)
    people.label("A-1", "other", "ann", THEN)
    other = await _endorsement(rig, issue)
    people.label("A-1", TRUST_LABEL, "bob", THEN)
    people.label("A-1", TRUST_LABEL, "bob", THEN + _HOUR, on=False)
    people.label("A-1", TRUST_LABEL, "ann", THEN + 2 * _HOUR)
    found = await _endorsement(rig, issue)

    require_equal((none, other), (None, None), "a label that nobody has set")
    require(found is not None, "a label that somebody has set was not found")
    assert found is not None
    told = (found.by, found.at, found.edits, found.tells_edits)
    require_equal(told, (ann, THEN + 2 * _HOUR, (), people.tells_edits), "a label")

    people.edit("A-1", "title", "bob", THEN + 3 * _HOUR)
    if people.tells_edits:
        people.edit("A-1", "description", "ann", THEN + 4 * _HOUR)
    edited = await _endorsement(rig, issue)
    require(edited is not None, "a label was not found after an edit")
    assert edited is not None
    later = {edit.by for edit in edited.edits if edit.at >= edited.at}
    wanted = {ann, bob} if people.tells_edits else {bob}
    require_equal(later, wanted, "who has edited since")
