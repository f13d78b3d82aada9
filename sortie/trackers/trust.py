"""Whether the words of the authors of issues and comments count, as far as the tracker tells.

Rule 1: what is not known is not trusted: an author of whom the tracker could not be asked counts
for nobody, until it answers.
Rule 2: a person is asked about once in RIGHTS_LIFE, whatever they have written; a refusal that is
about the key is believed for REFUSAL_LIFE.
Rule 3: a label counts only where somebody who is trusted has set it, and is gone with the first
change of title or description by somebody else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.config.trust import TrustSettings
from sortie.http.at_once import each
from sortie.model import Comment, Issue, IssueId, TrackerError, TrackerErrorKind, state_key
from sortie.model.trust import Endorsement, Right, Trust, login_key
from sortie.trackers import TellsOfPeople, Tracker

RIGHTS_LIFE = 3600.0
"""Seconds for which it is believed what somebody may do."""

REFUSAL_LIFE = 300.0
"""Seconds for which nobody is asked about again, once the tracker has not told."""

ENDORSEMENT_LIFE = 600.0
"""Seconds for which the label of an issue that has not changed is believed."""

_REMEMBERED = 5000

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_Rule = str | tuple[str, ...]


class _Vouched(Struct, frozen=True):
    """What was found of an issue's label: ``flaw`` says why it does not count."""

    version: object
    until: float
    flaw: str


class Judge:
    """Knows who is trusted; ``settings`` may be replaced at any time."""

    def __init__(self, tracker: Tracker, settings: TrustSettings) -> None:
        self.settings = settings
        self._tracker = tracker
        self._asking = trio.Lock()
        self._rights: dict[tuple[Right, str], tuple[float, bool]] = {}
        self._untold: dict[tuple[Right, str], tuple[float, str]] = {}
        self._refused: tuple[float, str] = (float("-inf"), "")
        self._vouched: dict[IssueId, _Vouched] = {}
        self._seen: dict[IssueId, tuple[object, tuple[str, str]]] = {}
        self._judged: dict[IssueId, tuple[Issue, Issue]] = {}

    async def judged(self, issues: Iterable[Issue]) -> list[Issue]:
        """Return issues with what follows from their authors, without comments that do not count.

        The same issue is the same object as before. Raises TrackerError where the tracker wants to
        be left alone.
        """
        issues, settings = list(issues), self.settings
        if not settings.asks:
            await trio.lowlevel.checkpoint()
            return issues
        async with self._asking:
            await self._learn(_people(issues, settings))
            for issue in issues:
                await self._look_at_label(issue, settings)
        return [self._with_trust(issue, settings) for issue in issues]

    def _with_trust(self, issue: Issue, settings: TrustSettings) -> Issue:
        kept: list[Comment] = []
        left_out: list[str] = []
        for one in issue.comments:
            if self._doubt(one.author_id, settings.of_comments):
                left_out.append(one.author)
            else:
                kept.append(one)
        distrust = self._distrust(issue, settings)
        holds = settings.on_untrusted == "hold"
        trust = Trust(distrust=distrust, holds=holds, left_out=tuple(left_out))
        known = self._judged.get(issue.id)
        if known is not None and known[0] is issue and known[1].trust == trust:
            return known[1]
        judged = replace(issue, comments=tuple(kept), trust=trust)
        _remember(self._judged, issue.id, (issue, judged))
        return judged

    def _distrust(self, issue: Issue, settings: TrustSettings) -> str:
        """Say why the words of an issue's author do not count, "" where they do."""
        doubt = self._doubt(issue.author_id, settings.authors)
        if not doubt:
            return ""
        name = issue.author or "nobody that the tracker knows"
        sentence = f"its author, {name}, {doubt} (trust.authors)"
        if not _has_label(issue, settings):
            return f"{sentence}; somebody who is trusted may add the label {settings.label}"
        vouched = self._vouched.get(issue.id)
        flaw = "it is not known yet who has set it" if vouched is None else vouched.flaw
        return f"{sentence}, and the label {settings.label} does not count: {flaw}" if flaw else ""

    def _doubt(self, author_id: str | None, rule: _Rule) -> str:
        """Say why somebody is not trusted by a rule, "" where they are."""
        if rule == "anyone":
            return ""
        if author_id is None or not author_id.strip():
            return "cannot be told from others"
        if isinstance(rule, tuple):
            return "" if login_key(author_id) in map(login_key, rule) else "is not named"
        asked = Right(rule), login_key(author_id)
        known = self._rights.get(asked)
        if known is not None:
            return "" if known[1] else asked[0].lacking
        return f"is not known to be trusted: {self._untold.get(asked, self._refused)[1]}"

    # What is asked

    async def _learn(self, people: Collection[tuple[_Rule, str]]) -> None:
        """Ask what these people may do, as far as it is not known."""
        now = trio.current_time()
        wanted: dict[tuple[Right, str], str] = {}
        for rule, author_id in people:
            if isinstance(rule, tuple) or rule == "anyone":
                continue
            asked = Right(rule), login_key(author_id)
            known, untold = self._rights.get(asked), self._untold.get(asked)
            if known is not None and now < known[0]:
                continue
            if untold is None or now >= untold[0]:
                wanted[asked] = author_id

        async def ask(asked: tuple[Right, str]) -> None:
            right, _ = asked
            try:
                if not isinstance(self._tracker, TellsOfPeople):
                    what = "the tracker does not tell of people"
                    raise TrackerError(TrackerErrorKind.PERMISSION, what)
                may = await self._tracker.may(wanted[asked], right)
            except TrackerError as exc:
                self._rights.pop(asked, None)
                if exc.kind not in (TrackerErrorKind.INVALID, TrackerErrorKind.NOT_FOUND):
                    raise
                _remember(self._untold, asked, (now + REFUSAL_LIFE, str(exc)))
            else:
                _remember(self._rights, asked, (trio.current_time() + RIGHTS_LIFE, may is True))

        if not wanted:
            return
        for asked in wanted:  # what is over is not believed any longer, whatever comes now
            self._rights.pop(asked, None)
        if now < self._refused[0]:
            return
        try:
            first, *others = wanted
            await ask(first)  # alone, as it may be that nobody may be asked about
            await each(ask, others)
        except TrackerError as exc:
            if exc.retry_after is not None:
                raise
            self._refused = (trio.current_time() + REFUSAL_LIFE, str(exc))

    async def _look_at_label(self, issue: Issue, settings: TrustSettings) -> None:
        """Find out who has set the label of an issue whose author is not trusted."""
        if not _has_label(issue, settings) or not self._doubt(issue.author_id, settings.authors):
            self._vouched.pop(issue.id, None)
            return
        now = trio.current_time()
        version = (issue.updated_at, issue.title, issue.description, settings)
        known = self._vouched.get(issue.id)
        if known is not None and known.version == version and now < known.until:
            return
        try:
            found = None
            if isinstance(self._tracker, TellsOfPeople):
                found = await self._tracker.endorsement(issue, settings.label)
            flaw = await self._flaw_of(found, issue, settings)
            until = now + ENDORSEMENT_LIFE
        except TrackerError as exc:
            if exc.retry_after is not None:
                raise
            flaw, until = f"it could not be asked who has set it: {exc}", now + REFUSAL_LIFE
        _remember(self._vouched, issue.id, _Vouched(version, until, flaw))

    async def _flaw_of(
        self, found: Endorsement | None, issue: Issue, settings: TrustSettings
    ) -> str:
        """Say why a label does not count, "" where it does."""
        if found is None:
            return "the tracker does not tell who has set it"
        later = [edit for edit in found.edits if edit.at >= found.at]
        ids = {edit.by for edit in later} | {found.by}
        await self._learn([(settings.authors, one) for one in ids if one is not None])
        if doubt := self._doubt(found.by, settings.authors):
            return f"{found.by or 'somebody'} has set it, who {doubt}"
        doubted = [edit.by for edit in later if self._doubt(edit.by, settings.authors)]
        if doubted:
            name = doubted[-1] or "somebody"
            return f"{name} has changed title or description since; set it anew"
        if not found.tells_edits and self._is_changed(found, issue):
            return "title or description have changed since; set it anew"
        return ""

    def _is_changed(self, found: Endorsement, issue: Issue) -> bool:
        """Tell whether an issue reads otherwise than when its label was first seen."""
        mark, text = (found.by, found.at), (issue.title, issue.description)
        known = self._seen.get(issue.id)
        if known is None or known[0] != mark:
            _remember(self._seen, issue.id, (mark, text))
            return False
        return known[1] != text


def _has_label(issue: Issue, settings: TrustSettings) -> bool:
    return state_key(settings.label) in map(state_key, issue.labels)


def _people(issues: Iterable[Issue], settings: TrustSettings) -> set[tuple[_Rule, str]]:
    """Return whom to ask about by which rule."""
    of_issues = {(settings.authors, issue.author_id) for issue in issues}
    of_comments = {
        (settings.of_comments, one.author_id) for issue in issues for one in issue.comments
    }
    return {(rule, one) for rule, one in of_issues | of_comments if one is not None}


def _remember(memory: dict[KeyT, ValueT], key: KeyT, value: ValueT) -> None:
    memory.pop(key, None)
    memory[key] = value
    while len(memory) > _REMEMBERED:
        del memory[next(iter(memory))]
