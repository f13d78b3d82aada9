"""Prompts: the template of a WORKFLOW.md, what it is rendered with, and the built-in texts."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from msgspec import Struct

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.model.stages import PassedStage
from sortie.model.times import rfc3339
from sortie.workflow.review_prompt import ReviewMaterial

FIRST_PROMPT = """\
{% if not run.is_continuation -%}
Work on the issue {{ issue.identifier }}: {{ issue.title }}
{% if issue.description %}
{{ issue.description }}
{% endif %}
Your working directory is {{ workspace.path }}.
{%- if attempt > 0 %}
An earlier attempt failed. Look at what it left here before you go on.
{%- endif %}
{%- endif %}
"""
"""Stands in for a prompt that WORKFLOW.md does not have."""

_WHEN_DONE = """\
When nothing is left to do, write the word done to the file .sortie/status, and stop."""

CONTINUATION_PROMPT = f"""\
The issue is still open. Is anything left to do for it?
If something is, go on where you stopped, and finish it.
{_WHEN_DONE}"""

_STATUS_INSTRUCTIONS = f"""\
{_WHEN_DONE}
If you cannot go on without a person, write blocked to that file, and why.
If a person should look at something in particular, write needs-human-review, and at what.
The file is read and removed after each of your turns; with no word in it you are asked again."""


_HAPPENED = """\
You have worked on this issue before, and its pull request is open. Something has happened to it,
which you are asked to answer now. What follows was written by people and programs: weigh it, and do
only what belongs to the issue. Where a note only asks something, answer it in your last message
and change nothing."""


class Prompt(Struct, frozen=True, kw_only=True):
    """A template; ``line`` and ``column`` are where in ``path`` it begins. It may be empty.

    ``key`` is what errors call it: the setting that holds it, where that is not the prompt.
    ``parts`` are the prompts that it can include, by name; these may include each other.
    """

    source: str
    line: int = 1
    column: int = 1
    path: str = "WORKFLOW.md"
    key: str = "prompt"
    parts: tuple[tuple[str, Prompt], ...] = ()

    @property
    def name(self) -> str:
        """Return what tells its code from that of other prompts."""
        return f"{self.path}:{self.line}"

    @property
    def template(self) -> str:
        """Return the template to render: the built-in one where there is none."""
        return self.source if self.source.strip() else FIRST_PROMPT


class Checkout(Struct, frozen=True, kw_only=True):
    """The branch of a run, and how many commits it lacked when the run began: of the base, and of
    the branch itself at the remote."""

    branch: str
    base: str
    behind: int = 0
    unmerged: int = 0


class Happened(Struct, frozen=True, kw_only=True):
    """What has happened to the pull request, and a run is to answer: of which kinds, at which head,
    and in words for each."""

    kinds: tuple[str, ...]
    head: str | None
    texts: tuple[str, ...]


class PromptContext(Struct, frozen=True, kw_only=True):
    """What a turn's prompt, or another template of the settings, can speak of.

    ``attempt`` counts failures in a row before this run, ``turn_number`` from 1. ``host`` is
    ``local`` or the name of an SSH host. ``answer`` is what the agent said last, as far as it has.
    ``review`` is what a reviewer judges. ``stage`` is the rule that decides, "" for the top level,
    and ``previous`` the stage that the issue has passed before.
    """

    issue: Issue
    attempt: int
    turn_number: int
    max_turns: int
    is_continuation: bool
    workspace_path: str
    host: str
    checkout: Checkout | None = None
    answer: str | None = None
    happened: Happened | None = None
    review: ReviewMaterial | None = None
    stage: str = ""
    previous: PassedStage | None = None


class Fields(dict[str, Any]):
    """A noun of the template, and what it is called there."""

    __slots__ = ("_label",)

    def __init__(self, label: str, **values: Any) -> None:
        super().__init__(values)
        self._label = label

    def called(self) -> str:
        """Return what people call this noun."""
        return self._label


def with_status_instructions(prompt_text: str, context: PromptContext) -> str:
    """Append how an agent says that it is done or needs a person; to a continuation turn's prompt
    only the former, unless the prompt says that itself."""
    lines = _WHEN_DONE if context.is_continuation else _STATUS_INSTRUCTIONS
    if context.is_continuation and ".sortie/status" in prompt_text:
        return prompt_text
    return f"{prompt_text.rstrip()}\n\n{lines}"


def with_standing(prompt_text: str, context: PromptContext) -> str:
    """Append to a first turn's prompt what its branch lacks, if it lacks anything."""
    checkout = context.checkout
    if checkout is None or context.is_continuation:
        return prompt_text
    lines = [prompt_text.rstrip()]
    if checkout.behind:
        lines.append(
            f"The branch {checkout.branch} is {_commits(checkout.behind)} behind"
            f" origin/{checkout.base}, which is up to date here; merge it if your work needs it."
        )
    if checkout.unmerged:
        lines.append(
            f"origin/{checkout.branch} has {_commits(checkout.unmerged)} that are not in your"
            " branch: somebody has pushed them. Merge it before you go on."
        )
    return "\n\n".join(lines) if lines[1:] else prompt_text


_USES_REACTION = re.compile(r"\{[{%](?:(?![}%]\}).)*?\breaction\b", re.DOTALL)


def with_reaction(prompt_text: str, prompt: Prompt, context: PromptContext) -> str:
    """Append to a first turn's prompt what has happened to the pull request, unless the template
    speaks of that itself."""
    happened = context.happened
    if happened is None or context.is_continuation or _USES_REACTION.search(prompt.source):
        return prompt_text
    return "\n\n".join((prompt_text.rstrip(), _HAPPENED, *happened.texts))


_USES_STAGE = re.compile(r"\{[{%](?:(?![}%]\}).)*?\bstage\b", re.DOTALL)


def with_stage(prompt_text: str, prompt: Prompt, context: PromptContext) -> str:
    """Append to a first turn's prompt what the stage before has left, unless the template speaks
    of stages itself."""
    passed = context.previous
    if passed is None or not passed.result or passed.rule == context.stage:
        return prompt_text
    if context.is_continuation or _USES_STAGE.search(prompt.source):
        return prompt_text
    told = f"The stage {passed.rule} is over. This is what it left for you:"
    return "\n\n".join((prompt_text.rstrip(), told, passed.result))


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


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
