"""What an agent is told of what has happened to its pull request.

Rule: what people and programs have written stands in a fence, or is quoted, line by line. It is
never a template, a command or an option.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from sortie.forges import Forge
from sortie.model import SortieError, cut
from sortie.model.outside import OutsideLog, on_one_line
from sortie.model.pull_requests import HeadCheck, Note, ReviewThread
from sortie.model.watches import Reaction
from sortie.worker.context import Assignment, RunContext
from sortie.worker.environment import RunEnvironment
from sortie.workflow.fences import Fence
from sortie.workflow.prompts import Happened
from sortie.workspaces import Workspace
from sortie.workspaces.repository import Repository

LOG_SHOWN = 20_000
"""Characters of the log of a check."""

PATHS_SHOWN = 50
"""Paths in conflict that an agent is told of."""

TEXT_SHOWN = 100_000
"""Characters of all that has happened."""

LINE_SHOWN = 300
"""Characters of a name or an address."""

_LEAST_SHOWN = 100

Quote = Callable[[str, str], str]
"""Returns a text of strangers as it stands in the prompt; the second is what it is."""

_OF_REVIEW, _OF_COMMENT = "a review", "a comment on the pull request"
_OF_LOG = "the log of a check"


async def happened(
    job: Assignment, context: RunContext, workspace: Workspace, fence: Fence | None = None
) -> Happened | None:
    """Return in words what the run is to answer, with the logs of failed checks; None where that
    is nothing."""
    reaction, remote = job.reaction, context.remote
    if reaction is None or remote is None:
        return None
    texts: list[str] = []
    left = TEXT_SHOWN

    def quoted(text: str, what: str) -> str:
        """Cut a text before it is fenced: of a fence nothing may be missing."""
        nonlocal left
        kept = cut(text, left) if left > _LEAST_SHOWN else "(left out: all is too long)"
        if fence is None:
            shown = _quoted(kept)
        else:
            shown = fence.around(OutsideLog(kept, what) if what is _OF_LOG else kept, what)
        left -= len(shown) + LINE_SHOWN
        return shown

    if reaction.conflicts:
        repository = remote.at(os.path.dirname(workspace.path))
        env = RunEnvironment(job, context, workspace).for_git()
        texts.append(await _conflicts(reaction, repository, env))
    settings = context.settings.reactions.checks
    lines = 0 if settings is None else settings.max_log_lines
    for check in reaction.checks:
        if left <= 0:
            break
        texts.append(await _check(check, remote.forge, context.redact, lines, quoted))
    for text in chain(_review(reaction, quoted), _commands(reaction, quoted)):
        texts.append(text)
        if left <= 0:
            break
    kinds = tuple(kind.value for kind in reaction.kinds)
    return Happened(kinds=kinds, head=reaction.head, texts=tuple(texts))


async def _conflicts(reaction: Reaction, repository: Repository, env: Mapping[str, str]) -> str:
    base = repository.base
    sentence = (
        f"The pull request cannot be merged: it conflicts with its base. Merge origin/{base} into"
        " your branch, solve what conflicts, and commit the merge."
    )
    try:
        paths = await repository.conflicts(reaction.head or "HEAD", env)
    except SortieError:
        return sentence  # it is only a help; the merge shows it again
    if not paths:
        return sentence
    listed = "\n".join(f"- {_line(path)}" for path in paths[:PATHS_SHOWN])
    return f"{sentence} These files conflict:\n{listed}"


async def _check(
    check: HeadCheck,
    forge: Forge | None,
    redact: Callable[[str], str],
    lines: int,
    quoted: Quote,
) -> str:
    sentence = f"The check {_line(check.name)} has failed."
    if check.url:
        sentence += f" It is shown at {_line(check.url)}."
    if forge is None or not lines:
        return sentence
    try:
        log = await forge.check_log(check, lines)
    except SortieError as exc:
        return f"{sentence} Its log could not be read: {_line(redact(str(exc)))}"
    if not log.strip():
        return sentence
    end = quoted(redact(log)[-LOG_SHOWN:], _OF_LOG)
    return f"{sentence} The end of its log:\n{end}"


def _review(reaction: Reaction, quoted: Quote) -> Iterator[str]:
    for review in reaction.reviews:
        said = f":\n{quoted(review.body, _OF_REVIEW)}" if review.body.strip() else "."
        yield f"{_line(review.author)} requests changes{said}"
    for thread in reaction.threads:
        yield f"{_place(thread)}\n{_notes(thread.notes, quoted)}"


def _place(thread: ReviewThread) -> str:
    if thread.path is None:
        return "In a review:"
    where = _line(thread.path) if thread.line is None else f"{_line(thread.path)}:{thread.line}"
    return f"In a review, about {where}{' (an earlier version of it)' if thread.outdated else ''}:"


def _notes(notes: tuple[Note, ...], quoted: Quote) -> str:
    return "\n".join(
        f"{_line(note.author)} says:\n{quoted(note.body, _OF_REVIEW)}"
        for note in notes
        if note.body
    )


def _commands(reaction: Reaction, quoted: Quote) -> Iterator[str]:
    for note in reaction.comments:
        yield f"{_line(note.author)} asks for this:\n{quoted(note.body, _OF_COMMENT)}"
    if reaction.labelled and not reaction.comments:
        yield "Somebody asks by a label that you look at the pull request again, and mend it."


def _line(text: str) -> str:
    return cut(on_one_line(text), LINE_SHOWN)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
