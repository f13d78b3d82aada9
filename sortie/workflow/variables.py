"""The variables of templates, and what each of them has."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.model.times import rfc3339
from sortie.workflow.prompts import Checkout, Happened, PromptContext
from sortie.workflow.review_prompt import ReviewMaterial


class Fields(dict[str, Any]):
    """A noun of the template, and what it is called there."""

    __slots__ = ("_label",)

    def __init__(self, label: str, **values: Any) -> None:
        super().__init__(values)
        self._label = label

    def called(self) -> str:
        """Return what people call this noun."""
        return self._label


def variables_of(context: PromptContext) -> dict[str, Any]:
    """Return the variables of the template; times are RFC 3339 in UTC, unknown is none."""
    return {
        "issue": _issue(context.issue),
        "attempt": context.attempt,
        "run": Fields(
            "run",
            turn_number=context.turn_number,
            max_turns=context.max_turns,
            is_continuation=context.is_continuation,
            answer=context.answer,
        ),
        "repository": _repository(context.checkout),
        "reaction": _reaction(context.happened),
        "workspace": Fields("workspace", path=context.workspace_path, host=context.host),
        "review": _review(context.review),
        "stage": _stage(context),
    }


def _stage(context: PromptContext) -> Fields:
    passed = context.previous
    previous = None
    if passed is not None:
        name, result = passed.rule, passed.result or None
        previous = Fields("stage.previous", name=name, result=result, hops=passed.hops)
    return Fields("stage", name=context.stage or None, previous=previous)


def _repository(checkout: Checkout | None) -> Fields:
    known = checkout or Checkout(branch="", base="")
    return Fields(
        "repository",
        branch=known.branch or None,
        base=known.base or None,
        behind=known.behind,
    )


def _reaction(happened: Happened | None) -> Fields:
    """Return what has happened; in a run that answers nothing, ``kind`` is none."""
    known = happened or Happened(kinds=(), head=None, texts=())
    return Fields(
        "reaction",
        kind=known.kinds[0] if known.kinds else None,
        kinds=list(known.kinds),
        head=known.head,
        texts=list(known.texts),
        text="\n\n".join(known.texts) or None,
    )


def _review(material: ReviewMaterial | None) -> Fields:
    known = material or ReviewMaterial(commit="", diff="")
    return Fields(
        "review",
        commit=known.commit or None,
        diff=known.diff,
        is_cut=known.is_cut,
        files=[
            Fields("a file", path=file.path, added=file.added, removed=file.removed)
            for file in known.files
        ],
        files_omitted=known.files_changed - len(known.files),
        findings=[
            Fields(
                "a finding",
                severity=finding.severity.value,
                place=finding.place,
                path=finding.path or None,
                line=finding.line,
                text=finding.text,
            )
            for finding in known.findings
        ],
    )


def _issue(issue: Issue) -> Fields:
    return Fields(
        "issue",
        id=str(issue.id),
        identifier=issue.identifier,
        title=issue.title,
        description=issue.description,
        state=issue.state,
        priority=issue.priority,
        url=issue.url,
        labels=list(issue.labels),
        author=issue.author,
        assignee=issue.assignee,
        issue_type=issue.issue_type,
        branch_name=issue.branch_name,
        parent=issue.parent,
        comments=[_comment(comment) for comment in issue.comments],
        blocked_by=[_blocker(blocker) for blocker in issue.blocked_by],
        created_at=_time(issue.created_at),
        updated_at=_time(issue.updated_at),
    )


def _comment(comment: Comment) -> Fields:
    return Fields(
        "a comment",
        author=comment.author,
        body=comment.body,
        created_at=_time(comment.created_at),
    )


def _blocker(blocker: Blocker) -> Fields:
    return Fields("a blocker", identifier=blocker.identifier, id=blocker.id, state=blocker.state)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment, "seconds")


_SAMPLE = variables_of(
    PromptContext(
        issue=Issue(id=IssueId(""), identifier="", title="", state=""),
        attempt=0,
        turn_number=1,
        max_turns=1,
        is_continuation=False,
        workspace_path="",
        host="",
    )
)

PROMPT_VARIABLES = frozenset(_SAMPLE)
"""The names that a template may use."""

VARIABLE_FIELDS = {
    name: frozenset(value) for name, value in _SAMPLE.items() if isinstance(value, Fields)
}
"""What each of those names has."""
