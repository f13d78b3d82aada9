"""Signatures of deliveries: HMAC with SHA-256 over the raw body, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac

from sortie.webhooks import NotAuthentic, OutOfTime, WebhookDelivery

TOLERANCE = 300.0
"""Seconds by which the time in a signed delivery may differ from the time here."""


def digest(secret: bytes, *parts: bytes) -> bytes:
    """Return the HMAC of these parts one after the other."""
    made = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        made.update(part)
    return made.digest()


def require_hex_digest(
    delivery: WebhookDelivery, header: str, secret: str, prefix: str = ""
) -> None:
    """Raise NotAuthentic unless a header is the prefix and the HMAC of the body in hex digits."""
    expected = prefix + digest(secret.encode(), delivery.body).hex()
    require_same(delivery.headers.get(header, ""), expected)


def require_same(given: str, expected: str) -> None:
    """Raise NotAuthentic for texts that differ; how long it takes does not tell where."""
    if not hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode()):
        raise NotAuthentic("the signature is not that of the secret")


def require_recent(signed_at: float, delivery: WebhookDelivery) -> None:
    """Raise OutOfTime for a time, in Unix seconds, that is too far from when the delivery came."""
    if not abs(delivery.at - signed_at) <= TOLERANCE:
        raise OutOfTime("the delivery was signed at another time")
