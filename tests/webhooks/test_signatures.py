"""Only the right secret over the very body lets a delivery in."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from msgspec.structs import replace

from sortie.webhooks import ADAPTERS, NotAuthentic, OutOfTime, WebhookDelivery
from sortie.webhooks.signatures import TOLERANCE
from tests.webhooks.senders import (
    KINDS,
    NOW,
    SECRET,
    body_of,
    delivery,
    hex_digest,
    issue_payload,
    signed,
    standard_signature,
)

SIGNATURES = {
    "gitea": "x-gitea-signature",
    "github": "x-hub-signature-256",
    "gitlab": "webhook-signature",
    "jira": "x-hub-signature",
    "linear": "linear-signature",
}


def verify(kind: str, one: WebhookDelivery, secret: str = SECRET) -> None:
    """Have the adapter of a kind judge a delivery."""
    ADAPTERS.load(kind).verify(one, secret)


def test_all_services_of_the_settings_have_an_adapter() -> None:
    """And no others are there."""
    from sortie.config.webhooks import KINDS_OF_WEBHOOKS

    assert ADAPTERS.kinds() == KINDS == tuple(sorted(KINDS_OF_WEBHOOKS))


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_service_sends_is_let_in(kind: str) -> None:
    """With the secret of the settings."""
    verify(kind, delivery(kind, issue_payload(kind)))


def with_header(one: WebhookDelivery, name: str, value: str | None) -> WebhookDelivery:
    """Return a delivery with another value of a header, or without it."""
    headers = {key: text for key, text in one.headers.items() if key != name}
    return replace(one, headers=headers if value is None else {**headers, name: value})


@pytest.mark.parametrize("kind", KINDS)
def test_anything_else_is_not(kind: str) -> None:
    """A wrong secret, another body, and a signature that is missing, cut, empty or of strange
    characters."""
    good, name = delivery(kind, issue_payload(kind)), SIGNATURES[kind]
    text = good.headers[name]
    wrong = [
        delivery(kind, issue_payload(kind), secret="another secret of some length"),
        replace(good, body=good.body + b" "),
        replace(good, body=body_of(kind, issue_payload(kind, 8))),
        with_header(good, name, None),
        with_header(good, name, ""),
        with_header(good, name, text[:-1]),
        with_header(good, name, text[:10]),
        with_header(good, name, f"{text}0"),
        with_header(good, name, text.upper()),
        with_header(good, name, f"{text},{text}"),
        with_header(good, name, "\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 64),
        with_header(good, name, "sha1=" + hex_digest(SECRET, good.body)),
    ]

    for one in wrong:
        with pytest.raises(NotAuthentic):
            verify(kind, one)


@pytest.mark.parametrize("kind", ["gitlab", "linear"])
@pytest.mark.parametrize("late", [-TOLERANCE - 2, TOLERANCE + 2, 1e12, -1e9])
def test_a_signed_time_has_to_be_now(kind: str, late: float) -> None:
    """A delivery that was recorded is not let in later, nor one of tomorrow."""
    body = body_of(kind, issue_payload(kind), at=NOW + late)
    one = WebhookDelivery(headers=signed(kind, body, at=NOW + late), body=body, at=NOW)

    with pytest.raises(NotAuthentic):
        verify(kind, one)


@pytest.mark.parametrize("time", ["", "now", "1e9", "-5", "9" * 400, "٣"])
def test_a_time_that_is_none_is_refused(time: str) -> None:
    """Although it is signed."""
    body = body_of("gitlab", issue_payload("gitlab"))
    headers = {
        "webhook-id": "1",
        "webhook-timestamp": time,
        "webhook-signature": standard_signature(SECRET.encode(), "1", time, body),
    }

    with pytest.raises(NotAuthentic):
        verify("gitlab", WebhookDelivery(headers=headers, body=body, at=NOW))


def test_the_id_of_a_signed_delivery_is_signed_too() -> None:
    """So a copy with another id is refused at once."""
    good = delivery("gitlab", issue_payload("gitlab"))

    with pytest.raises(NotAuthentic):
        verify("gitlab", with_header(good, "webhook-id", "another"))


def test_a_key_in_base_64_and_a_plain_token_are_understood() -> None:
    """One of several signatures is enough; a wrong one is not made good by the token."""
    key = b"a key of thirty-two bytes, random"
    secret = f"whsec_{base64.b64encode(key).decode()}"
    body = body_of("gitlab", issue_payload("gitlab"))
    time = str(int(NOW))
    made = standard_signature(key, "1", time, body)
    headers = {
        "webhook-id": "1",
        "webhook-timestamp": time,
        "webhook-signature": f"v1,AAAA {made}",
    }
    token: dict[str, Any] = {"x-gitlab-token": SECRET}
    wrong = {**headers, "webhook-signature": "v1,AAAA", "x-gitlab-token": secret}

    verify("gitlab", WebhookDelivery(headers=headers, body=body, at=NOW), secret)
    verify("gitlab", WebhookDelivery(headers=token, body=body, at=NOW))
    with pytest.raises(NotAuthentic):
        verify("gitlab", WebhookDelivery(headers=wrong, body=body, at=NOW), secret)
    with pytest.raises(NotAuthentic):
        verify(
            "gitlab", WebhookDelivery(headers={"x-gitlab-token": SECRET[:-1]}, body=body, at=NOW)
        )


def test_an_old_delivery_is_told_from_a_forged_one() -> None:
    """A clock that is wrong shows as that."""
    body = body_of("linear", issue_payload("linear"), at=NOW - 1000)

    with pytest.raises(OutOfTime):
        verify("linear", WebhookDelivery(headers=signed("linear", body), body=body, at=NOW))
