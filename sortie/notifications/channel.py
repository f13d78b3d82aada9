"""What sends notifications to one target, and how that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from sortie.config.notifications import NotificationTarget
from sortie.model import SortieError
from sortie.store.outbox import Outgoing


class SendFailed(SortieError):
    """A target was not told. ``final``: it has refused for good. ``unsure``: it may have been told
    all the same. ``retry_after`` is in seconds, where the target has said so."""

    def __init__(
        self,
        message: str,
        *,
        final: bool = False,
        unsure: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.final = final
        self.unsure = unsure
        self.retry_after = retry_after


class TargetChannel(Protocol):
    """The way to one target."""

    batch: int
    """So many notifications are taken out of the store with one commit."""

    def messages(self, batch: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
        """Divide notifications into messages, in their order."""
        ...

    async def send(self, message: Sequence[Outgoing]) -> str:
        """Send a message; return what the target has answered, for people. Raises SendFailed."""
        ...


OpenChannel = Callable[[NotificationTarget], AbstractAsyncContextManager[TargetChannel]]
