"""Where Kiro's conversations are read from, and this machine's stores as such a source."""

from __future__ import annotations

import os
from typing import Protocol

import trio
from msgspec import Struct

from sortie.agents import SessionParams
from sortie.kiro.conversations import Conversation, ConversationError, KiroPlaces
from sortie.kiro.conversations.latest import LatestConversations, Sight
from sortie.resources import run_in_thread

CONVERSATION_LIMIT = 16 * 1024 * 1024
"""Bytes of one conversation that are read."""


class StoreReading(Struct, frozen=True, kw_only=True):
    """What is there now, and the conversation that is another one than before, or has changed."""

    sight: Sight
    conversation: Conversation | None = None


class ConversationSource(Protocol):
    """The stores of one session's host, for its workspace. What it raises only costs evidence."""

    async def look(self) -> Sight:
        """Return what is there now. Can be cancelled."""
        ...

    async def read(self, before: Sight) -> StoreReading:
        """Return what is there now, and what has changed since a look. Can be cancelled.

        Raises ConversationError where that cannot be read.
        """
        ...


class LocalSource:
    """The stores of this machine, where the agent's environment has them.

    Rule: at most one thread reads for a session; one that hangs is left behind, and none begins
    as long as it does.
    """

    def __init__(self, params: SessionParams, limiter: trio.CapacityLimiter) -> None:
        places = KiroPlaces.of(params.env)
        # A relative path is relative to the agent's working directory.
        places.sessions = os.path.join(params.workspace, places.sessions)
        self._latest = LatestConversations(places, params.workspace, CONVERSATION_LIMIT)
        self._limiter = limiter
        self._busy = False

    async def look(self) -> Sight:
        """Return what is there now."""
        return (await self._in_thread(None)).sight

    async def read(self, before: Sight) -> StoreReading:
        """Return what is there now, and what has changed since a look."""
        return await self._in_thread(before)

    async def _in_thread(self, before: Sight | None) -> StoreReading:
        if self._busy:
            raise ConversationError("an earlier reading has not ended")
        return await run_in_thread(
            self._work, before, limiter=self._limiter, abandon_on_cancel=True
        )

    def _work(self, before: Sight | None) -> StoreReading:
        self._busy = True
        try:
            sight = self._latest.look()
            stores = [] if before is None else sight.changed_since(before)
            conversation = self._latest.read(stores[0]) if stores else None
            return StoreReading(sight=sight, conversation=conversation)
        finally:
            self._busy = False
