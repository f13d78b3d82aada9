"""The settings of ``webhooks``: which services tell that something has changed, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from sortie.config.block import Block
from sortie.config.references import Lookup
from sortie.config.values import Secret, whole


class WebhookSettings(Block):
    """The secret by which deliveries of one service are known."""

    secret: Annotated[Secret, Lookup.ONLY]


class WebhooksSettings(Block):
    """The services whose deliveries are taken, and the port of their own listener; without
    ``port`` they come to the port of the server."""

    port: Annotated[int | None, whole(1, 65535)] = None
    github: WebhookSettings | None = None
    gitlab: WebhookSettings | None = None
    gitea: WebhookSettings | None = None
    linear: WebhookSettings | None = None
    jira: WebhookSettings | None = None

    @property
    def secrets(self) -> Mapping[str, str]:
        """The secrets by the kinds of the services that are set up."""
        found = {kind: getattr(self, kind) for kind in KINDS_OF_WEBHOOKS}
        return {
            kind: block.secret.get_secret_value()
            for kind, block in found.items()
            if block is not None
        }


KINDS_OF_WEBHOOKS = tuple(name for name in WebhooksSettings.model_fields if name != "port")
"""The kinds of services, which are the keys of their blocks."""
