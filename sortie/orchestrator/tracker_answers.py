"""Check the answers of a tracker's adapter, and take secrets out, before anything else sees them.

Rule 1: an adapter's bug costs the issues that it concerns, and neither the others nor the
scheduler.
Rule 2: a secret in the text of an issue reaches no agent, log or disk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from operator import is_
from types import NoneType

from msgspec.structs import replace

from sortie.model import Blocker, Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.model.secrets import unchanged
from sortie.model.texts import start_of
from sortie.model.trust import Trust
from sortie.trackers import IssuesRead

Complain = Callable[[str], object]
"""Takes a sentence about each thing that an adapter got wrong."""


Redact = Callable[[str], str]
"""Returns a text without secrets; the text itself where it has none."""


class SoundAnswers:
    """Checks a tracker's answers; an issue that the last list held already is not checked again.

    Rule: an issue that was sound stays sound for as long as it is the same object.
    """

    def __init__(self) -> None:
        # By the ``id`` of the object that came, which is unique while the object is held here.
        self._known: dict[int, tuple[object, Issue]] = {}
        self._redact: Redact = unchanged

    def hide(self, redact: Redact) -> None:
        """Pass on no secret from now on that ``redact`` knows."""
        self._redact, self._known = redact, {}

    def clean(self, issue: Issue) -> Issue:
        """Return an issue without secrets in the texts that people write; itself if it has none."""
        return without_secrets(issue, self._redact)

    def listed(self, answer: Iterable[object], complain: Complain) -> tuple[Issue, ...]:
        """Return the issues of a list that are what they are declared to be, each once.

        Of two with one id the first counts. Two with one identifier would share a workspace, so
        neither is returned.
        """
        came: dict[IssueId, object] = {}
        issues = _without_namesakes(self._sound(answer, complain, came), complain)
        self._known = {id(came[i]): (came[i], issue) for i, issue in issues.items()}
        return tuple(issues.values())

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

    def _sound(
        self,
        answer: Iterable[object],
        complain: Complain,
        came: dict[IssueId, object] | None = None,
    ) -> dict[IssueId, Issue]:
        """Return the sound issues by id; ``came`` takes the object that came for each."""
        known = self._known
        issues: dict[IssueId, Issue] = {}
        for item in answer:
            if (found := known.get(id(item))) is not None:
                issue = found[1]
            else:
                if (flaw := flaw_of(item)) is not None:
                    complain(flaw)
                    continue
                assert isinstance(item, Issue)
                issue = self.clean(item)
            if issue.id not in issues:
                issues[issue.id] = issue
                if came is not None:
                    came[issue.id] = item
        return issues


def without_secrets(issue: Issue, redact: Redact) -> Issue:
    """Return an issue without secrets in its title, description and comments; itself if it has
    none there. What it is known by stays: its identifiers, states, labels and addresses."""
    title, description = redact(issue.title), redact(issue.description)
    comments = issue.comments
    if comments:
        comments = tuple(_clean_comment(comment, redact) for comment in comments)
        if all(map(is_, comments, issue.comments)):
            comments = issue.comments
    if title is issue.title and description is issue.description and comments is issue.comments:
        return issue
    return replace(issue, title=title, description=description, comments=comments)


def _clean_comment(comment: Comment, redact: Redact) -> Comment:
    author, body = redact(comment.author), redact(comment.body)
    author_id = None if comment.author_id is None else redact(comment.author_id)
    if (author, body, author_id) == (comment.author, comment.body, comment.author_id):
        return comment
    return replace(comment, author=author, body=body, author_id=author_id)


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
    if (name := _wrong_field(item, Issue)) is None:
        return None
    value = start_of(repr(getattr(item, name)), 100)
    return f"issue {item.id!r:.100} has a wrong {name}: {value}"


def _wrong_field(item: object, kind: type) -> str | None:
    """Return the first field of an item whose value is not what it is declared to be."""
    for name, kinds in _FIELDS.get(kind, {}).items():
        value = getattr(item, name)
        if not isinstance(value, kinds):
            return name
        if isinstance(value, datetime) and value.utcoffset() is None:
            return name
        if isinstance(value, tuple):
            part = _PARTS[name]
            if any(not isinstance(one, part) or _wrong_field(one, part) for one in value):
                return name
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
    what = f"it could not be read: {start_of(repr(error), 200)}"
    return TrackerError(TrackerErrorKind.UNAVAILABLE, what)


_OPTIONAL_TEXT = (str, NoneType)
_OPTIONAL_TIME = (datetime, NoneType)
_PARTS: Mapping[str, type] = {"labels": str, "comments": Comment, "blocked_by": Blocker}
"""What the tuples in these fields hold."""

_FIELDS: Mapping[type, Mapping[str, type | tuple[type, ...]]] = {
    Issue: {
        **dict.fromkeys(("id", "identifier", "title", "state", "description"), str),
        **dict.fromkeys(("url", "assignee", "issue_type", "branch_name", "parent"), _OPTIONAL_TEXT),
        **dict.fromkeys(("author", "author_id"), _OPTIONAL_TEXT),
        **dict.fromkeys(("created_at", "updated_at"), _OPTIONAL_TIME),
        **dict.fromkeys(_PARTS, tuple),
        "priority": (int, NoneType),
        "trust": (Trust, NoneType),
    },
    Comment: {
        "author": str,
        "body": str,
        "created_at": _OPTIONAL_TIME,
        "author_id": _OPTIONAL_TEXT,
    },
    Blocker: {"identifier": str, "id": _OPTIONAL_TEXT, "state": _OPTIONAL_TEXT},
}
