"""All of Kiro's stores at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Protocol

from sortie.kiro.conversations.database_v1 import DatabaseV1
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationError,
    ConversationSummary,
    Engine,
)
from sortie.kiro.conversations.sessions_v2 import SessionsV2
from sortie.kiro.conversations.sessions_v3 import SessionsV3
from sortie.kiro.places import KiroPlaces

FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of one document or file that are read, unless a caller says otherwise."""


class EngineStore(Protocol):
    """What one engine keeps. Every method raises ConversationError."""

    def summaries(self, directory: str | None = None) -> Iterable[ConversationSummary]: ...

    def load(self, summary: ConversationSummary) -> Conversation: ...

    def delete(self, summary: ConversationSummary) -> None: ...


class ConversationStores:
    """The conversations of one user, in whatever store they are. Every method does blocking I/O.

    ``on_trouble`` is told of a store that cannot be read while others are: what they hold counts.
    ``limit`` is how many bytes of one document or file are read, and ``patience`` how many seconds
    a database that is being written is waited for.
    """

    def __init__(
        self,
        places: KiroPlaces,
        *,
        limit: int = FILE_LIMIT,
        patience: float = 1.0,
        on_trouble: Callable[[ConversationError], object] = lambda _: None,
    ) -> None:
        self._on_trouble = on_trouble
        self._database = DatabaseV1(places.database, limit, patience)
        self._stores: dict[Engine, EngineStore] = {
            "v1": self._database,
            "v2": SessionsV2(places.sessions, limit),
            "v3": SessionsV3(places.sessions, limit),
        }

    def summaries(self, directory: str | None = None) -> list[ConversationSummary]:
        """Return the conversations of a directory, or all, the newest first.

        A directory is compared by its real path, as Kiro writes its own working directory.
        """
        real = None if directory is None else os.path.realpath(directory)
        found: list[ConversationSummary] = []
        for store in self._stores.values():
            try:
                found += store.summaries(real)
            except ConversationError as exc:
                self._on_trouble(exc)
        return sorted(found, key=lambda each: each.updated, reverse=True)

    def newest(self, directory: str) -> ConversationSummary | None:
        """Return the conversation of a directory that was changed last, in any store."""
        return next(iter(self.summaries(directory)), None)

    def find(self, identity: str) -> ConversationSummary | None:
        """Return the conversation with this id; the newest, should two stores have one."""
        return next((each for each in self.summaries() if each.id == identity), None)

    def load(self, summary: ConversationSummary) -> Conversation:
        """Return all that is kept of a conversation. Raises ConversationError."""
        return self._stores[summary.engine].load(summary)

    def document(self, summary: ConversationSummary) -> bytes:
        """Return the document that engine v1 keeps of a conversation. Raises ConversationError."""
        return self._database.text(summary).encode(errors="surrogatepass")

    def delete(self, summary: ConversationSummary) -> None:
        """Delete a conversation. Raises ConversationError where it stays."""
        self._stores[summary.engine].delete(summary)
