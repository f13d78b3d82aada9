"""Notifications as messages through apprise: mail, chats, push services.

apprise is loaded when a target needs it. It sends in the calling thread, so each target has one
thread at most; one that is given up keeps its target waiting until it ends, and no other.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import trio

from sortie.config.notifications import NotificationTarget
from sortie.model import SortieError
from sortie.model.secrets import redactor
from sortie.model.texts import start_of
from sortie.notifications.channel import SendFailed
from sortie.resources import Shortage, run_in_thread
from sortie.resources.lease import LeaseLost, require_lease
from sortie.store.outbox import Outgoing

SEND_LIMIT = 60.0
"""Seconds after which a message that is being sent is given up, with its thread."""

MOST_BUNDLED, MOST_CHARACTERS = 20, 3000
"""Notifications and characters in one message, but for a single notification that is longer."""

_REFUSED = re.compile(r"\berror[=: ]+(4\d\d)\b")
_PASSING = frozenset({"408", "425", "429"})
_SHOWN = 500
_LINES_KEPT = 5
_LIBRARY = "apprise"
_REPEATED = "(This may have reached you before.)"


def message_of(message: Sequence[Outgoing]) -> tuple[str, str]:
    """Return the title and the body of a message that tells of these notifications."""
    bodies = [_body(outgoing) for outgoing in message]
    if len(message) == 1:
        return message[0].notification.title, bodies[0]
    titles = [outgoing.notification.title for outgoing in message]
    parts = [f"{title}\n{body}" for title, body in zip(titles, bodies, strict=True)]
    return f"{titles[0]}, and {len(message) - 1} more", "\n\n".join(parts)


def _body(outgoing: Outgoing) -> str:
    told = outgoing.notification
    lines = [_REPEATED] if outgoing.unsure else []
    if told.issue is not None and told.issue.title:
        lines.append(told.issue.title)
    lines.append(told.text)
    lines += [f"{name}: {link}" for name, link in told.links]
    return "\n".join(lines)


class AppriseChannel:
    """Sends messages to one address of apprise."""

    batch = MOST_BUNDLED

    def __init__(self, target: NotificationTarget) -> None:
        self._address = target.address
        self._redact = redactor(target.secrets)
        self._limiter = trio.CapacityLimiter(1)

    def messages(self, batch: Sequence[Outgoing]) -> Iterator[Sequence[Outgoing]]:
        """Yield as many notifications together as a message holds."""
        together: list[Outgoing] = []
        size = 0
        for outgoing in batch:
            length = len(outgoing.notification.title) + len(_body(outgoing))
            if together and size + length > MOST_CHARACTERS:
                yield together
                together, size = [], 0
            together.append(outgoing)
            size += length
        if together:
            yield together

    async def send(self, message: Sequence[Outgoing]) -> str:
        """Send one message. Raises SendFailed."""
        title, body = message_of(message)
        with trio.move_on_after(SEND_LIMIT):
            try:
                told = await run_in_thread(
                    self._send, title, body, limiter=self._limiter, abandon_on_cancel=True
                )
            except (Shortage, LeaseLost) as exc:
                raise SendFailed(str(exc)) from exc
            if told is None:
                return "it took the message"
            refused = _REFUSED.search(told)
            final = refused is not None and refused[1] not in _PASSING
            raise SendFailed(start_of(told, _SHOWN, self._redact), final=final, unsure=not final)
        raise SendFailed(f"there was no answer within {SEND_LIMIT:g} s", unsure=True)

    def _send(self, title: str, body: str) -> str | None:
        """Send in this thread; return what apprise says of a failure, None after a success."""
        apprise = load_apprise()
        sender = made_sender(self._address)
        require_lease()
        with _captured() as log:
            try:
                sent = sender.notify(body=body, title=title, body_format=apprise.NotifyFormat.TEXT)
            except Exception as exc:  # a plugin for one of a hundred services
                return f"apprise failed: {type(exc).__name__}: {exc}"
        return None if sent else " ".join(log.lines) or "the service did not take the message"


class _ThreadLog(logging.Handler):
    """What apprise logs in this thread; it may hold secrets."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self._thread = threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line of this thread."""
        if record.thread == self._thread and len(self.lines) < _LINES_KEPT:
            self.lines.append(record.getMessage())


@contextmanager
def _captured() -> Iterator[_ThreadLog]:
    """Keep what apprise logs in this thread, and show it nowhere."""
    logger, handler = logging.getLogger(_LIBRARY), _ThreadLog()
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def load_apprise() -> Any:
    """Return the library, silent. Raises SortieError where it is not installed."""
    try:
        import apprise
    except ImportError as exc:
        raise SortieError(
            "notifications with a url need apprise, which cannot be loaded:"
            f" pip install 'sortie[notifications]' ({exc})"
        ) from exc
    logging.getLogger(_LIBRARY).propagate = False  # it logs addresses
    return apprise


def made_sender(address: str) -> Any:
    """Return what sends to an address. Raises SortieError for one that apprise does not know."""
    apprise = load_apprise()
    # Without these it sends in threads of its own, which all targets share and the end waits for.
    asset = apprise.AppriseAsset(async_mode=False, service_timeout=0)
    sender = apprise.Apprise(asset=asset)
    with _captured():
        is_known = sender.add(address)
    if not is_known:
        raise SortieError("apprise does not understand the address; see its page on the service")
    if len(sender) > 1:
        raise SortieError("there are several addresses in one; make a target of each")
    return sender


@asynccontextmanager
async def open_chat(target: NotificationTarget) -> AsyncIterator[AppriseChannel]:
    """Hold the channel of an address open. Raises SortieError as ``made_sender`` does."""
    await run_in_thread(made_sender, target.address)
    yield AppriseChannel(target)
