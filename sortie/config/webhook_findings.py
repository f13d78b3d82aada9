"""What is wrong with ``webhooks`` beside other settings; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sortie.config.forge_kinds import kind_of_forge
from sortie.config.report import Finding
from sortie.config.webhooks import KINDS_OF_WEBHOOKS
from sortie.documents import Path

_PORT: Path = ("webhooks", "port")
_SERVER: Path = ("server", "port")


def webhook_findings(parts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the services whose deliveries would wake nothing, and a port that cannot be had."""
    needed = [parts[name] for name in ("webhooks", "server", "tracker", "repository", "forge")]
    if any(block is None for block in needed):
        return
    webhooks, server, tracker, repository, forge = needed
    forges = kind_of_forge(repository, forge, tracker)
    for kind in webhooks.secrets:
        if kind not in (tracker.kind, forges):
            message = f"wakes nothing, unless a rule has it: neither tracker nor forge is {kind}"
            needs: tuple[Path, ...] = (("tracker", "kind"), ("forge", "kind"))
            yield Finding(path=("webhooks", kind), message=message, severity="warning", needs=needs)
    if not webhooks.secrets:
        if webhooks.port is not None:
            message = "opens a port for no service; name one, such as github, with its secret"
            secrets = tuple(("webhooks", kind, "secret") for kind in KINDS_OF_WEBHOOKS)
            yield Finding(path=_PORT, message=message, severity="warning", needs=secrets)
        return
    if webhooks.port is None and server.port == 0:
        message = "needs a port, as server.port is 0"
        yield Finding(path=("webhooks",), message=message, needs=(_SERVER,))
    elif webhooks.port == server.port:
        message = "is server.port as well; leave it out to take deliveries there"
        yield Finding(path=_PORT, message=message, needs=(_SERVER,))
