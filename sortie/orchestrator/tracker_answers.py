"""What a tracker's answer has to be before anything else sees it.

Rule: an adapter's bug costs the issues that it concerns, and neither the others nor the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import cast

from sortie.model import Blocker, Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers import IssuesRead

Complain = Callable[[str], object]
"""Is told, in a sentence, of each thing that an adapter got wrong."""


class SoundAnswers:
    """Looks at a tracker's answers, and not again at an issue that the last list held already.

    Rule: an issue that was sound is sound for as long as it is the same object, as none can change.
    """

    def __init__(self) -> None:
        self._answer: object = None
        self._issues: tuple[Issue, ...] = ()
        self._known: dict[int, Issue] = {}  # by ``id``, which is theirs while they are held here

    def listed(self, answer: Iterable[object], complain: Complain) -> tuple[Issue, ...]:
        """Return the issues of a list that are what they are declared to be, each once.

        Of two with one id the first counts; two with one identifier would share a workspace, so
        neither does. For the same tuple as last time it is the same tuple as then.
        """
        if isinstance(answer, tuple) and answer is self._answer:
            return self._issues
        items = tuple(answer)
        issues = _without_namesakes(self._sound(items, complain), complain)
        self._answer = items
        self._issues = tuple(issues.values())
        if len(issues) == len(items):  # then it is the answer itself, for others to know again
            self._issues = cast("tuple[Issue, ...]", items)
        self._known = {id(issue): issue for issue in self._issues}
        return self._issues

    def reread(
        self, answer: IssuesRead, ids: Collection[IssueId], complain: Complain
    ) -> IssuesRead:
        """Return what a re-read says of the issues that were asked for.

        An issue is missing only where everything that came could be understood: it might be what
        could not.
        """
        faults: list[str] = []
        sound = self._sound(answer.issues, faults.append)
        found = {i: issue for i, issue in sound.items() if i in ids}
        failed = {i: _as_error(error) for i, error in answer.failed.items() if i in ids}
        for fault in faults:
            complain(fault)
        if faults:
            error = TrackerError(
                TrackerErrorKind.UNAVAILABLE, f"the answer is no good: {faults[0]}"
            )
            failed |= {i: error for i in ids if i not in found and i not in failed}
        return IssuesRead(issues=tuple(found.values()), failed=failed)

    def _sound(self, answer: Iterable[object], complain: Complain) -> dict[IssueId, Issue]:
        known = self._known
        issues: dict[IssueId, Issue] = {}
        for item in answer:
            issue = known.get(id(item))
            if issue is None:
                if (flaw := flaw_of(item)) is not None:
                    complain(flaw)
                    continue
                assert isinstance(item, Issue)
                issue = item
            issues.setdefault(issue.id, issue)
        return issues


def sound_issue(answer: object) -> Issue:
    """Return an issue. Raises TypeError for anything else."""
    if (flaw := flaw_of(answer)) is not None:
        raise TypeError(flaw)
    assert isinstance(answer, Issue)
    return answer


def sound_move(answer: object, issue: Issue) -> Issue:
    """Return an issue after its transition. Raises TypeError for anything else."""
    moved = sound_issue(answer)
    if moved.id != issue.id:
        raise TypeError(f"issue {issue.id!r} was moved, and {moved.id!r} came back")
    return moved


def flaw_of(item: object) -> str | None:
    """Say why something is no issue, None where it is one."""
    if not isinstance(item, Issue):
        return f"an issue was expected, not {type(item).__name__}"
    for name, is_right in _FIELDS.items():
        if not is_right(value := getattr(item, name)):
            return f"issue {item.id!r:.100} has a wrong {name}: {value!r:.100}"
    return None


def _without_namesakes(issues: dict[IssueId, Issue], complain: Complain) -> Mapping[IssueId, Issue]:
    if len({issue.identifier for issue in issues.values()}) == len(issues):
        return issues
    holders: dict[str, list[IssueId]] = {}
    for issue in issues.values():
        holders.setdefault(issue.identifier, []).append(issue.id)
    for identifier, ids in holders.items():
        if len(ids) > 1:
            names = ", ".join(sorted(ids))
            complain(f"the issues {names} have one identifier, {identifier!r}; none is started")
            for issue_id in ids:
                del issues[issue_id]
    return issues


def _as_error(error: object) -> TrackerError:
    if isinstance(error, TrackerError):
        return error
    return TrackerError(TrackerErrorKind.UNAVAILABLE, f"it could not be read: {error!r:.200}")


def _text(value: object) -> bool:
    return isinstance(value, str)


def _text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _number_or_none(value: object) -> bool:
    return value is None or isinstance(value, int)


def _time_or_none(value: object) -> bool:
    return value is None or (isinstance(value, datetime) and value.utcoffset() is not None)


def _texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(item, str) for item in value)


def _comments(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, Comment)
        and _text(item.author)
        and _text(item.body)
        and _time_or_none(item.created_at)
        for item in value
    )


def _blockers(value: object) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(item, Blocker)
        and _text(item.identifier)
        and _text_or_none(item.id)
        and _text_or_none(item.state)
        for item in value
    )


_FIELDS: Mapping[str, Callable[[object], bool]] = {
    "id": _text,
    "identifier": _text,
    "title": _text,
    "state": _text,
    "description": _text,
    "priority": _number_or_none,
    "url": _text_or_none,
    "labels": _texts,
    "assignee": _text_or_none,
    "issue_type": _text_or_none,
    "branch_name": _text_or_none,
    "parent": _text_or_none,
    "comments": _comments,
    "blocked_by": _blockers,
    "created_at": _time_or_none,
    "updated_at": _time_or_none,
}
