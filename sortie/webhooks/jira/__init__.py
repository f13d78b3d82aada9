"""Jira Cloud, and Jira Data Center where its webhooks have a secret."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.json import Decoder

from sortie.model.webhooks import Mention
from sortie.webhooks import WebhookAdapter, WebhookDelivery
from sortie.webhooks.payloads import names, places_of
from sortie.webhooks.signatures import require_hex_digest

_SIGNATURE = "x-hub-signature"


class _JiraIssueName(Struct):
    id: str | int | None = None
    key: str | None = None


class _JiraLink(Struct):
    source: str | int | None = field(default=None, name="sourceIssueId")
    destination: str | int | None = field(default=None, name="destinationIssueId")


class _JiraPayload(Struct):
    issue: _JiraIssueName | None = None
    link: _JiraLink | None = field(default=None, name="issueLink")


_PAYLOADS = Decoder(_JiraPayload)


def _mention(delivery: WebhookDelivery) -> Mention | None:
    told = _PAYLOADS.decode(delivery.body)
    issue, link = told.issue or _JiraIssueName(), told.link or _JiraLink()
    issues = names([issue.id, issue.key, link.source, link.destination])
    if not issues:
        return None
    project = issue.key.rpartition("-")[0] if issue.key else None
    return Mention(places=places_of(project), issues=issues)


ADAPTER = WebhookAdapter(
    kind="jira",
    signed_by=(_SIGNATURE,),
    verify=lambda delivery, secret: require_hex_digest(delivery, _SIGNATURE, secret, "sha256="),
    id_of=lambda delivery: delivery.headers.get("x-atlassian-webhook-identifier", ""),
    mention=_mention,
)
