"""Targets of requests: what is taken is taken for the same by other readers."""

from __future__ import annotations

from urllib.parse import urlsplit

import h11
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sortie.model.allowed_hosts import canonical_host
from sortie.transports.walls.request_target import (
    RequestRefused,
    RequestTarget,
    RouteTarget,
    TunnelTarget,
    has_dots,
    target_of,
)

PIECES = st.sampled_from(
    (
        *(
            "http",
            "://",
            "/",
            "\\",
            "@",
            ":",
            "?",
            "#",
            "[",
            "]",
            "%2e",
            "%2f",
            "%00",
            "%",
            "..",
            ".",
        ),
        *("docs.example", "evil.example", "127.0.0.1", "127.1", "0x7f.1", "::1", "::ffff:10.0.0.1"),
        *("80", "443", "0", "99999", "a", "A", "-", "_", "*", ";", ",", "xn--", "~", "git"),
    )
)
TARGETS = st.lists(PIECES, max_size=9).map("".join)


def asked(method: str, target: str) -> TunnelTarget | RequestTarget | RouteTarget | None:
    """Return what a request asks for, None where it is refused."""
    try:
        return target_of(
            h11.Request(method=method, target=target, headers=[("Host", "docs.example")])
        )
    except (RequestRefused, h11.LocalProtocolError):
        return None


@given(TARGETS)
@example("evil.example\\@docs.example/")
@example("docs.example:80@evil.example/")
@example("docs.example;@evil.example/")
def test_other_readers_find_the_same_host(rest: str) -> None:
    """What two libraries take for the host and port of an address is what is judged here."""
    target = asked("GET", f"http://{rest}")

    if isinstance(target, RequestTarget):
        parts = urlsplit(f"http://{rest}")
        url = httpx2.URL(f"http://{rest}")
        assert parts.hostname is not None
        assert (
            canonical_host(parts.hostname)
            == target.host
            == canonical_host(url.raw_host.decode("ascii"))
        )
        assert (parts.port or 80) == target.port == (url.port or 80)
        assert parts.username is None
        assert canonical_host(target.host) == target.host
        assert target.path.startswith("/")


@given(TARGETS)
def test_a_tunnel_is_to_a_host_and_a_port(target: str) -> None:
    """Its host is in the form for comparing, and its port stands behind the last colon."""
    found = asked("CONNECT", target)

    assert found is None or isinstance(found, TunnelTarget)
    if found is not None:
        host, _, port = target.rpartition(":")
        assert (canonical_host(host), int(port)) == (found.host, found.port)


@given(TARGETS)
def test_a_route_is_a_path_without_dots(rest: str) -> None:
    """A server that takes away dots finds the path that was judged."""
    found = asked("GET", f"/{rest}")

    if isinstance(found, RouteTarget):
        assert found.path.startswith("/")
        assert "/" not in found.name
        assert not has_dots(found.path)


@pytest.mark.parametrize(
    ("path", "dots"),
    [
        ("/a/b", False),
        ("/a.b/c..d/...", False),
        ("/a?b=../c", False),
        ("/a/../b", True),
        ("/a/.", True),
        ("/..", True),
        ("/a/%2E%2e/b", True),
        ("/a/.%2e", True),
        ("/a/b%2f..%2fc", True),
        ("/a\\..\\b", True),
        ("/a%5c..", True),
    ],
)
def test_dots_of_paths(path: str, dots: bool) -> None:
    """Parts of dots are found however they are written; a query has none."""
    assert has_dots(path) is dots
