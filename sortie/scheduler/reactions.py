"""What has happened to a pull request that calls for a further run; pure.

Rule 1: a cause is acted on once. Its name holds what makes it one: the head and the check, the
review, the note.
Rule 2: what people without the right to it, programs, and Sortie itself write causes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.config.authors import Authors
from sortie.config.reactions import ReactionsSettings, ReviewReaction
from sortie.model.pull_requests import (
    CheckState,
    HeadCheck,
    Note,
    PullRequestState,
    Review,
    ReviewThread,
)
from sortie.model.watches import Reaction, ReactionKind, Watch
from sortie.scheduler.merge_gates import demanded

SHOWN = 30
"""Checks, reviews, threads, notes of a thread and comments that one run is told of."""

_COMMAND = re.compile(r"\s*/sortie[ \t]+(fix|stop|retry)\b[ \t]*(.*)", re.DOTALL)


class AskedFor(Struct, frozen=True):
    """What somebody asks for in a comment."""

    word: Literal["fix", "stop", "retry"]
    note: Note


class Causes(Struct, frozen=True, kw_only=True):
    """What has happened and was not acted on yet, by the names of the causes.

    ``again`` are failed checks that are to be made again first.
    """

    conflicts: dict[str, bool] = field(default_factory=dict)
    checks: dict[str, HeadCheck] = field(default_factory=dict)
    again: dict[str, HeadCheck] = field(default_factory=dict)
    reviews: dict[str, Review] = field(default_factory=dict)
    threads: dict[str, ReviewThread] = field(default_factory=dict)
    comments: dict[str, Note] = field(default_factory=dict)
    label: str | None = None

    @property
    def review(self) -> frozenset[str]:
        """The names of what reviewers have said."""
        return frozenset((*self.reviews, *self.threads))


def causes_of(
    watch: Watch,
    seen: PullRequestState,
    writers: frozenset[str],
    settings: ReactionsSettings,
    *,
    settled: bool = True,
) -> Causes:
    """Return what has happened that no reaction has answered; ``settled``: checks of this head
    that are demanded would be there by now."""
    known, head = frozenset(watch.causes), seen.pull_request.head
    causes = Causes()
    if settings.conflicts is not None and seen.conflicts:
        name = f"conflicts:{head}"
        if name not in known:
            causes.conflicts[name] = True
    if settings.checks is not None:
        for check in demanded(seen.checks, settings.checks.names, settled=settled):
            name = f"check:{head}:{check.id}"
            if name in known or check.state is not CheckState.FAILURE:
                continue
            key = rerun_key(head, check)
            is_first = settings.checks.rerun and key not in watch.reruns
            (causes.again if is_first else causes.checks)[name] = check
    if (review := settings.review) is not None:
        for one in seen.reviews:
            name = f"review:{one.id}"
            heard = is_heard(one.author, review.authors, writers, bot=one.bot, bots=review.bots)
            if one.state == "changes_requested" and heard and name not in known:
                causes.reviews[name] = one
        for thread in seen.threads:
            told = _heard_in(thread, review, writers)
            new = [f"note:{note.id}" for note in unanswered(thread, writers) if note in told.notes]
            if new and new[-1] not in known:
                causes.threads[new[-1]] = told
    for command in commands_in(watch, seen, writers, settings):
        if command.word == "fix":
            causes.comments[f"comment:{command.note.id}"] = command.note
    if (asked := settings.commands) is not None and asked.label in seen.labels:
        name = f"label:{asked.label}"
        return causes if name in known else replace(causes, label=name)
    return causes


def _heard_in(
    thread: ReviewThread, review: ReviewReaction, writers: frozenset[str]
) -> ReviewThread:
    """Return a thread with the newest notes that count. Its first note stays without its text where
    it does not count: a reply is to that one."""
    heard = [
        note
        for note in thread.notes
        if is_heard(note.author, review.authors, writers, bot=note.bot, bots=review.bots)
    ][-SHOWN:]
    first = [replace(note, body="") for note in thread.notes[:1] if note not in heard]
    return replace(thread, notes=(*first, *heard))


def unanswered(thread: ReviewThread, writers: frozenset[str]) -> tuple[Note, ...]:
    """Return the notes of a thread after Sortie's last one; none where it is resolved. Sortie's
    account is a program or may push: its mark in a note of somebody else answers nothing."""
    if thread.resolved:
        return ()
    own = [
        place
        for place, note in enumerate(thread.notes, 1)
        if note.own and (note.bot or note.author in writers)
    ]
    return thread.notes[own[-1] if own else 0 :]


def commands_in(
    watch: Watch, seen: PullRequestState, writers: frozenset[str], settings: ReactionsSettings
) -> Iterator[AskedFor]:
    """Yield what people ask for in comments, and was not obeyed yet."""
    if settings.commands is None:
        return
    for note in seen.comments:
        found = _COMMAND.match(note.body)
        if found is None or note.own or f"comment:{note.id}" in watch.causes:
            continue
        if is_heard(note.author, settings.commands.authors, writers, bot=note.bot, bots=()):
            word: Literal["fix", "stop", "retry"] = found[1]  # type: ignore[assignment]
            yield AskedFor(word, note)


def rerun_key(head: str | None, check: HeadCheck) -> str:
    """Return by what it is known that a check was made again."""
    return f"{head}:{check.name}"


def is_heard(
    author: str, authors: Authors, writers: frozenset[str], *, bot: bool, bots: tuple[str, ...]
) -> bool:
    """Tell whether somebody's words count; a program's do only where it is named."""
    names = {name.casefold() for name in (*bots, *(authors if isinstance(authors, tuple) else ()))}
    if author.casefold() in names:
        return True
    if bot or isinstance(authors, tuple):
        return False
    return authors == "anyone" or author in writers


class CalledFor(Struct, frozen=True, kw_only=True):
    """What the causes call for: a reaction, unless there were enough of one kind."""

    reaction: Reaction | None = None
    exhausted: ReactionKind | None = None


def call_for(
    watch: Watch, head: str | None, causes: Causes, settings: ReactionsSettings
) -> CalledFor:
    """Return the reaction that answers all causes together, the first SHOWN of each kind: what an
    agent is not told of is left to the next."""
    conflicts, checks = tuple(causes.conflicts), tuple(causes.checks)[:SHOWN]
    reviews, threads = tuple(causes.reviews)[:SHOWN], tuple(causes.threads)[:SHOWN]
    comments = tuple(causes.comments)[:SHOWN]
    found: dict[ReactionKind, tuple[str, ...]] = {
        ReactionKind.CONFLICTS: conflicts,
        ReactionKind.CHECKS: checks,
        ReactionKind.REVIEW: (*reviews, *threads),
        ReactionKind.COMMANDS: (*comments, *([causes.label] if causes.label else [])),
    }
    kinds = tuple(kind for kind, names in found.items() if names)
    for kind in kinds:
        if watch.runs.get(kind, 0) >= most_runs(kind, settings):
            return CalledFor(exhausted=kind)
    if not kinds:
        return CalledFor()
    return CalledFor(
        reaction=Reaction(
            kinds=kinds,
            causes=tuple(name for names in found.values() for name in names),
            head=head,
            conflicts=bool(conflicts),
            checks=tuple(causes.checks[name] for name in checks),
            reviews=tuple(causes.reviews[name] for name in reviews),
            threads=tuple(causes.threads[name] for name in threads),
            comments=tuple(causes.comments[name] for name in comments),
            labelled=causes.label is not None,
        )
    )


def most_runs(kind: ReactionKind, settings: ReactionsSettings) -> int:
    """Return how many runs of a kind there may be, 0 where it is off."""
    block = {
        ReactionKind.CONFLICTS: settings.conflicts,
        ReactionKind.CHECKS: settings.checks,
        ReactionKind.REVIEW: settings.review,
        ReactionKind.COMMANDS: settings.commands,
    }[kind]
    return 0 if block is None else block.max_runs
