"""Services that send deliveries: what each signs, with which headers, and payloads in their shapes.

The payloads hold the fields that the services document, with values of these tests.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from sortie.webhooks import WebhookDelivery

SECRET = "0123456789abcdef0123456789abcdef"
NOW = 1_790_000_000.0

KINDS = ("gitea", "github", "gitlab", "jira", "linear")


def hex_digest(secret: str, body: bytes) -> str:
    """Return the HMAC of a body as most services write it."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(key: bytes, name: str, time: str, body: bytes) -> str:
    """Return the signature over id, time and body that newer versions of GitLab make."""
    signed = f"{name}.{time}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed(
    kind: str,
    body: bytes,
    *,
    secret: str = SECRET,
    id_: str = "delivery-1",
    event: str = "",
    at: float = NOW,
) -> dict[str, str]:
    """Return the headers with which a service of a kind sends a body."""
    headers = {"content-type": "application/json"}
    match kind:
        case "github":
            headers["x-hub-signature-256"] = f"sha256={hex_digest(secret, body)}"
            headers |= {"x-github-delivery": id_, "x-github-event": event}
        case "gitea":
            headers["x-gitea-signature"] = hex_digest(secret, body)
            headers |= {"x-gitea-delivery": id_, "x-gitea-event": event}
        case "gitlab":
            time = str(int(at))
            headers |= {"webhook-id": id_, "webhook-timestamp": time, "x-gitlab-event": event}
            key = secret.encode()
            headers["webhook-signature"] = standard_signature(key, id_, time, body)
        case "linear":
            headers["linear-signature"] = hex_digest(secret, body)
            headers["linear-delivery"] = id_
        case "jira":
            headers["x-hub-signature"] = f"sha256={hex_digest(secret, body)}"
            headers["x-atlassian-webhook-identifier"] = id_
    return headers


def body_of(kind: str, payload: Mapping[str, Any], at: float = NOW) -> bytes:
    """Return a payload as a service sends it; Linear has a time in it."""
    stamp = {"webhookTimestamp": int(at * 1000)} if kind == "linear" else {}
    return json.dumps({**payload, **stamp}).encode()


def delivery(kind: str, payload: Mapping[str, Any], **more: Any) -> WebhookDelivery:
    """Return a delivery as it comes from a service."""
    body = body_of(kind, payload)
    return WebhookDelivery(headers=signed(kind, body, **more), body=body, at=NOW)


def issue_payload(kind: str, number: int = 7) -> dict[str, Any]:
    """Return a payload about a changed issue."""
    match kind:
        case "github" | "gitea":
            return {
                "action": "labeled",
                "issue": {"number": number, "title": "Mend it", "labels": []},
                "repository": repository("Acme/Web"),
                "sender": {"login": "ann"},
            }
        case "gitlab":
            return {
                "object_kind": "issue",
                "project": {
                    "id": 42,
                    "path_with_namespace": "Acme/Web",
                    "web_url": "https://git.example/Acme/Web",
                },
                "object_attributes": {"iid": number, "title": "Mend it", "action": "update"},
            }
        case "linear":
            data = {"id": f"uuid-{number}", "identifier": f"ENG-{number}", "team": {"key": "ENG"}}
            return {"action": "update", "type": "Issue", "data": data}
        case _:
            issue = {"id": str(10_000 + number), "key": f"PROJ-{number}", "fields": {}}
            return {"webhookEvent": "jira:issue_updated", "issue": issue}


def repository(full_name: str) -> dict[str, Any]:
    """Return a repository of GitHub or Gitea."""
    return {"id": 1, "full_name": full_name, "html_url": f"https://git.example/{full_name}"}
