"""Linear."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.json import Decoder

from sortie.model.webhooks import Mention
from sortie.webhooks import WebhookAdapter, WebhookDelivery
from sortie.webhooks.payloads import names, places_of
from sortie.webhooks.signatures import require_hex_digest, require_recent

_SIGNATURE = "linear-signature"


class _HookedTeam(Struct):
    key: str | None = None


class _LinearIssueName(Struct):
    id: str | None = None
    identifier: str | None = None


class _LinearData(Struct):
    """The issue, or what belongs to one."""

    id: str | None = None
    identifier: str | None = None
    team: _HookedTeam | None = None
    issue: _LinearIssueName | None = None
    issue_id: str | None = field(default=None, name="issueId")
    related_issue_id: str | None = field(default=None, name="relatedIssueId")


class _LinearPayload(Struct):
    type: str | None = None
    data: _LinearData | None = None
    webhook_timestamp: float | None = field(default=None, name="webhookTimestamp")


class _LinearTime(Struct):
    webhook_timestamp: float = field(name="webhookTimestamp")


_PAYLOADS = Decoder(_LinearPayload)
_STAMPS = Decoder(_LinearTime)


def _verify(delivery: WebhookDelivery, secret: str) -> None:
    require_hex_digest(delivery, _SIGNATURE, secret)
    require_recent(_STAMPS.decode(delivery.body).webhook_timestamp / 1000, delivery)


def _mention(delivery: WebhookDelivery) -> Mention | None:
    told = _PAYLOADS.decode(delivery.body)
    data = told.data or _LinearData()
    about = (
        _LinearIssueName(data.id, data.identifier)
        if told.type == "Issue"
        else data.issue or _LinearIssueName()
    )
    issues = names([about.id, about.identifier, data.issue_id, data.related_issue_id])
    if not issues:
        return None
    team = about.identifier.rpartition("-")[0] if about.identifier else None
    key = data.team.key if data.team is not None else None
    return Mention(places=places_of(key or team), issues=issues)


ADAPTER = WebhookAdapter(
    kind="linear",
    signed_by=(_SIGNATURE,),
    verify=_verify,
    id_of=lambda delivery: delivery.headers.get("linear-delivery", ""),
    mention=_mention,
)
