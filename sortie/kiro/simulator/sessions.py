"""List, find and delete kept conversations, over the stores of all engines.

Only commands that are about earlier conversations import this: it reads them as the daemon does.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from sortie.kiro.conversations import (
    Answer,
    ConversationError,
    ConversationStores,
    ConversationSummary,
    KiroPlaces,
    Prompt,
    Record,
)
from sortie.kiro.conversations.files import read_object
from sortie.kiro.conversations.records import prompts
from sortie.kiro.simulator.keeping import ACP, CHAT, MADE_BY, StoreTrouble, is_own, timestamp

_LIMIT = 64 * 1024 * 1024
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60))


class Sessions:
    """The conversations that an environment means. The methods raise StoreTrouble."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._stores = ConversationStores(KiroPlaces.of(environment), on_trouble=_fail)

    def listed(self, directory: str, *, headless: bool) -> list[dict[str, Any]]:
        """Return those of a directory, the newest first; of headless turns only if that is said.

        A conversation that cannot be read, such as one that was deleted meanwhile, is not listed.
        """
        found = []
        for summary in self._stores.summaries(directory):
            with suppress(ConversationError, ValueError):
                if headless or self._document(summary).get(MADE_BY) != CHAT:
                    found.append(self._row(summary))
        return found

    def find(self, identity: str, source: str | None = None) -> ConversationSummary:
        """Return a conversation by its id."""
        for summary in self._stores.summaries():
            if summary.id == identity and source in (None, summary.engine):
                return summary
        where = f" in the store of {source}" if source else ""
        raise StoreTrouble(f"no session with the id {identity} was found{where}")

    def own(self, identity: str, source: str | None = None) -> ConversationSummary:
        """Return a conversation by its id, that the simulator may change."""
        summary = self.find(identity, source)
        try:
            own = is_own(self._document(summary))
        except (ConversationError, ValueError) as error:
            raise StoreTrouble(str(error)) from error
        if not own:
            raise StoreTrouble(
                f"the session {identity} belongs to a real Kiro; the simulator leaves it alone"
            )
        return summary

    def delete(self, identity: str, source: str | None = None) -> None:
        """Delete a conversation by its id."""
        summary = self.own(identity, source)
        try:
            self._stores.delete(summary)
        except ConversationError as error:
            raise StoreTrouble(str(error)) from error

    def records_of(self, summary: ConversationSummary) -> tuple[Record, ...]:
        """Return what was said and done in a conversation."""
        try:
            return self._stores.load(summary).records
        except (ConversationError, ValueError) as error:
            raise StoreTrouble(str(error)) from error

    def prompts_of(self, summary: ConversationSummary | None) -> list[str]:
        """Return what was asked in a conversation."""
        return [] if summary is None else list(prompts(self.records_of(summary)))

    def of_clients(self, directory: str | None) -> list[dict[str, Any]]:
        """Return the conversations of clients of ``acp``, as they are told to one."""
        found = []
        for summary in self._stores.summaries(directory):
            with suppress(ConversationError, ValueError):
                if self._document(summary).get(MADE_BY) == ACP:
                    row = self._row(summary)
                    told = {key: row[key] for key in ("sessionId", "title", "updatedAt")}
                    found.append({**told, "cwd": summary.directory})
        return found

    def newest(self, directory: str, engine: str) -> ConversationSummary | None:
        """Return the conversation of a directory that an engine would resume."""
        of_engine = (s for s in self._stores.summaries(directory) if s.engine == engine)
        return next(of_engine, None)

    def _row(self, summary: ConversationSummary) -> dict[str, Any]:
        records = self._stores.load(summary).records
        said = [r for r in records if isinstance(r, Prompt | Answer)]
        first = next((r.text for r in records if isinstance(r, Prompt)), "")
        return {
            "sessionId": summary.id,
            "source": summary.engine,
            "title": summary.title or " ".join(first.split())[:60],
            "updatedAt": timestamp(summary.updated * 1_000_000),
            "messageCount": len(said),
        }

    def _document(self, summary: ConversationSummary) -> Mapping[str, Any]:
        if summary.engine != "v1":
            return read_object(summary.place, _LIMIT)
        found = json.loads(self._stores.document(summary))
        return found if isinstance(found, dict) else {}


def as_json(directory: str, sessions: list[dict[str, Any]]) -> str:
    """Return a list of sessions as ``--format json`` shows it."""
    return json.dumps([{"cwd": directory, "sessions": sessions}]) + "\n"


def as_text(directory: str, sessions: list[dict[str, Any]], now: float) -> str:
    """Return a list of sessions as it is shown to people; ``now`` is in seconds since 1970."""
    if not sessions:
        return "No saved chat sessions for this directory.\n"
    return "".join(_lines(directory, sessions, now))


def _lines(directory: str, sessions: list[dict[str, Any]], now: float) -> Iterator[str]:
    yield f"Chat sessions for {directory}:\n\n"
    for session in sessions:
        parts = (
            _ago(str(session["updatedAt"]), now),
            session["title"],
            f"{session['messageCount']} msgs",
            session["source"],
        )
        yield f"Chat SessionId: {session['sessionId']}\n"
        yield f"  {' | '.join(parts)}\n\n"


def _ago(updated: str, now: float) -> str:
    import calendar

    then = calendar.timegm(time.strptime(updated[:19], "%Y-%m-%dT%H:%M:%S"))
    for unit, seconds in _UNITS:
        if (count := int(now - then) // seconds) > 0:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def _fail(error: ConversationError) -> None:
    raise StoreTrouble(str(error)) from error
