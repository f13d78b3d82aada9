"""Addresses: what is loopback, however it is written, and what only looks like it."""

from __future__ import annotations

import pytest

from sortie.model.addresses import is_loopback


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("ip6-localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("192.168.1.5", False),
        ("example.com", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.1", False),
        ("2130706433", False),
    ],
)
def test_loopback_is_what_no_other_machine_can_be(host: str, loopback: bool) -> None:
    """Names that merely look like loopback are not."""
    assert is_loopback(host) is loopback
