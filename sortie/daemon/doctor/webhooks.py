"""The checks of webhooks: what the daemon at work says of the deliveries of each kind."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from msgspec import ValidationError, convert

from sortie.config.settings import Settings
from sortie.daemon.endpoint_file import DaemonEndpoint, is_at_work, read_endpoint
from sortie.model import SortieError
from sortie.model.checks import Check, CheckResult, passed, warned
from sortie.resources import run_in_thread
from sortie.web.webhooks.views import WebhookView

_TIMEOUT = 10.0
_LARGEST = 64 * 1024 * 1024
_REMEDY = (
    "look at the list of deliveries at the service, and at what docs/webhooks.md says to tick; a"
    " test delivery shows whether the way is open"
)


def webhook_checks(settings: Settings) -> Sequence[Check]:
    """Return a check for each kind that the settings name."""
    return [
        Check(name=kind, ask=partial(run_in_thread, webhook_result, settings, kind))
        for kind in settings.webhooks.secrets
    ]


def webhook_result(settings: Settings, kind: str) -> CheckResult:
    """Tell whether deliveries of a kind arrive, by the daemon at work; blocks."""
    try:
        endpoint = read_endpoint(settings.db_path)
        if not is_at_work(settings.db_path, endpoint) or endpoint.url is None:
            return passed(f"{kind}: no daemon with an HTTP server is at work that could tell")
        views = _views(_state(endpoint))
    except (SortieError, OSError, http.client.HTTPException, ValueError) as exc:
        return warned(f"{kind}: the daemon does not tell: {exc}", "run 'sortie status'")
    view = next((one for one in views if one.kind == kind), None)
    if view is None:
        return warned(
            f"{kind}: the daemon takes no such deliveries for this workflow",
            "have it read WORKFLOW.md again; a kind is for the workflow's tracker or forge",
        )
    return passed(view.words) if view.is_well else warned(view.words, _REMEDY)


def _state(endpoint: DaemonEndpoint) -> Mapping[str, Any]:
    """Ask the daemon for its state; the token goes to the address that it has written down."""
    parts = urlsplit(f"{endpoint.url}api/v1/state")
    connection = http.client.HTTPConnection(parts.netloc, timeout=_TIMEOUT)
    try:
        headers = {"Authorization": f"Bearer {endpoint.token}", "Accept": "application/json"}
        connection.request("GET", parts.path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(_LARGEST)
        if answer.status != 200:
            raise ValueError(f"it answers with {answer.status}")
        state: Mapping[str, Any] = json.loads(body)
        return state
    finally:
        connection.close()


def _views(state: Mapping[str, Any]) -> list[WebhookView]:
    try:
        return convert(state["tracker"].get("webhooks", []), list[WebhookView], strict=False)
    except (KeyError, AttributeError, ValidationError) as exc:
        raise ValueError(f"its state is one of another version ({exc})") from exc
