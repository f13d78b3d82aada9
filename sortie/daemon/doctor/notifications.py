"""The checks of the targets of notifications: nothing is sent."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import trio

from sortie.config.notifications import NotificationTarget
from sortie.config.settings import Settings
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.resources import run_in_thread

_LOOK_UP = 10.0  # seconds for the name of a server


def notification_checks(settings: Settings) -> Sequence[Check]:
    """Return a check for each target."""
    return [
        Check(
            name=target.name or "",
            ask=partial(_chat if target.webhook is None else _webhook, target),
            remedy="correct the address; see docs/notifications.md",
        )
        for target in settings.notifications
    ]


async def _chat(target: NotificationTarget) -> CheckResult:
    """Tell whether apprise understands the address. Raises SortieError."""
    from sortie.notifications.chat import made_sender

    await run_in_thread(made_sender, target.address)
    return passed(f"apprise understands the address ({target.kind}); {_TRY}")


async def _webhook(target: NotificationTarget) -> CheckResult:
    """Tell whether the server of a webhook is known, and whether what goes there is hidden."""
    parts = urlsplit(target.address)
    host = parts.hostname or ""
    try:
        with trio.fail_after(_LOOK_UP):
            await trio.socket.getaddrinfo(host, parts.port or 443)
    except (OSError, trio.TooSlowError) as exc:
        why = str(exc) or f"no answer within {_LOOK_UP:g} s"
        return failed(f"the server {host} is not known: {why}", "correct webhook, or the network")
    if parts.scheme == "http" and host not in ("localhost", "127.0.0.1", "::1"):
        said = f"what is sent to {host} can be read on the way; {_TRY}"
        return warned(said, "use https")
    return passed(f"the server {host} is known; {_TRY}")


_TRY = "'sortie notifications test' sends a message"
