"""How values look: countdowns, amounts, and which addresses become links."""

from __future__ import annotations

import pytest

from sortie.web.dashboard import formats
from tests.web.dashboard import states
from tests.web.dashboard.states import ago


def test_countdowns_end() -> None:
    """What is in the past is due."""
    now = states.NOW.timestamp()

    assert formats.countdown(ago(-61), now) == "in 1m01s"
    assert formats.countdown(ago(1), now) == "due"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//elsewhere.example/",
        "/issues/1",
        "http://",
        "https://user:word@tracker.example/1",
        " https://tracker.example",
        "https://tracker.example/\nx",
        "http://[bad",
        "ftp://tracker.example/",
        "",
        None,
    ],
)
def test_other_addresses_are_no_links(url: str | None) -> None:
    """Only whole addresses of the web are."""
    assert formats.web_url(url) is None
