"""Access: the rules for Host, Origin and token, as tables."""

from __future__ import annotations

import pytest

from sortie.web.access import Access, Headers, RequestHead, canonical_host, refusal

LOOPBACK = Access(host="127.0.0.1", loopback=True, token="right")
LAN = Access(host="192.168.1.5", loopback=False, token="right", names=("buildbox",))
EVERYWHERE = Access(host="0.0.0.0", loopback=False, token="right")
TOKEN = (b"authorization", b"Bearer right")
HOST = (b"host", b"localhost:7678")


def status(access: Access, *headers: tuple[bytes, bytes], **fields: str) -> int | None:
    """Return the status of the refusal of a GET of the state, None where it is answered."""
    request = RequestHead(
        method=fields.get("method", "GET"),
        path=fields.get("path", "/api/v1/state"),
        headers=headers,
        local_address=fields.get("local_address"),
    )
    refused = refusal(access, request)
    return None if refused is None else refused.status


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("localhost:7678", "localhost"),
        ("LocalHost:7678", "localhost"),
        ("localhost.", "localhost"),
        ("localhost.:7678", "localhost"),
        ("127.0.0.1:7678", "127.0.0.1"),
        ("[::1]:7678", "::1"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1"),
        ("evil.example", "evil.example"),
        ("", None),
        (":7678", None),
        ("localhost:", None),
        ("localhost:0", None),
        ("localhost:65536", None),
        ("localhost:port", None),
        ("localhost:7678:7678", None),
        ("::1", None),
        ("[::1", None),
        ("[::1]7678", None),
        ("[1:2]", None),
        ("user@localhost", None),
        ("localhost/path", None),
        ("localhost, evil.example", None),
        ("local host", None),
        ("localhost\x00", None),
        ("löcalhost", None),
    ],
)
def test_a_host_is_read_as_a_client_means_it(authority: str, host: str | None) -> None:
    """Spelling does not matter, the port is left off, and what is no authority is None."""
    assert canonical_host(authority) == host


@pytest.mark.parametrize(
    ("access", "hosts", "refused"),
    [
        (LOOPBACK, [b"127.0.0.1:7678"], None),
        (LOOPBACK, [b"localhost:7678"], None),
        (LOOPBACK, [b"LOCALHOST."], None),
        (LOOPBACK, [b"[::1]:7678"], None),
        (LOOPBACK, [b"localhost:9000"], None),  # the near end of an SSH tunnel
        (LOOPBACK, [], 403),
        (LOOPBACK, [b""], 403),
        (LOOPBACK, [b"localhost", b"localhost"], 403),
        (LOOPBACK, [b"localhost", b"evil.example"], 403),
        (LOOPBACK, [b"evil.example:7678"], 403),
        (LOOPBACK, [b"localhost.evil.example"], 403),
        (LOOPBACK, [b"0.0.0.0:7678"], 403),
        (LOOPBACK, [b"192.168.1.5:7678"], 403),
        (LOOPBACK, [b"\xff"], 403),
        (LAN, [b"192.168.1.5:7678"], None),
        (LAN, [b"BuildBox:7678"], None),
        (LAN, [b"localhost"], None),
        (LAN, [b"192.168.1.6"], 403),
        (EVERYWHERE, [b"0.0.0.0"], None),
        (EVERYWHERE, [b"10.0.0.9"], 403),
    ],
)
def test_host_must_name_us(access: Access, hosts: list[bytes], refused: int | None) -> None:
    """One Host, naming the bound address or loopback; the port does not matter."""
    headers = [(b"host", host) for host in hosts]

    assert status(access, *headers, TOKEN) == refused


def test_where_the_connection_arrived_is_a_bound_address_too() -> None:
    """On a wildcard bind a client may call us by the address that it connected to."""
    host = (b"host", b"10.0.0.9:7678")

    assert status(EVERYWHERE, host, TOKEN, local_address="10.0.0.9") is None
    assert status(EVERYWHERE, host, TOKEN, local_address="::ffff:10.0.0.9") is None
    assert status(EVERYWHERE, host, TOKEN, local_address="10.0.0.8") == 403


@pytest.mark.parametrize(
    ("origins", "refused"),
    [
        ([], None),
        ([b"http://localhost:7678"], None),
        ([b"http://127.0.0.1:7678"], None),
        ([b"https://localhost"], None),
        ([b"http://[::1]:7678"], None),
        ([b"null"], 403),
        ([b""], 403),
        ([b"http://evil.example"], 403),
        ([b"http://localhost:7678", b"http://localhost:7678"], 403),
        ([b"http://localhost.evil.example"], 403),
        ([b"http://localhost@evil.example"], 403),
        ([b"http://evil.example#localhost"], 403),
        ([b"http://localhost/path"], 403),
        ([b"file://localhost"], 403),
        ([b"localhost"], 403),
        ([b"http://[::1"], 403),
    ],
)
def test_origin_must_name_us_where_it_is_sent(origins: list[bytes], refused: int | None) -> None:
    """A page of another site is refused, even with the right Host and token."""
    headers = [(b"origin", origin) for origin in origins]

    assert status(LOOPBACK, HOST, TOKEN, *headers) == refused


@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_probes_may_use_any_name(path: str) -> None:
    """A prober that knows an address only, or no name at all, is answered."""
    assert status(LOOPBACK, path=path) is None
    assert status(LOOPBACK, (b"host", b"pod-7"), (b"origin", b"null"), path=path) is None
    assert status(LOOPBACK, (b"host", b"pod-7"), path="/livez/") == 403


@pytest.mark.parametrize(
    ("access", "method", "headers", "needed"),
    [
        (LOOPBACK, "GET", [], False),
        (LOOPBACK, "HEAD", [], False),
        (LOOPBACK, "POST", [], True),
        (LOOPBACK, "OPTIONS", [], True),
        (LOOPBACK, "GET", [(b"forwarded", b"for=1.2.3.4")], True),
        (LOOPBACK, "GET", [(b"x-forwarded-for", b"1.2.3.4")], True),
        (LOOPBACK, "GET", [(b"x-forwarded-host", b"localhost")], True),
        (LOOPBACK, "GET", [(b"x-forwarded", b"")], True),
        (LAN, "GET", [], True),
        (LAN, "POST", [], True),
    ],
)
def test_where_a_token_is_needed(
    access: Access, method: str, headers: Headers, needed: bool
) -> None:
    """Reading over loopback is open; changing, coming from elsewhere or through a proxy is not."""
    assert status(access, HOST, *headers, method=method) == (401 if needed else None)
    assert status(access, HOST, *headers, TOKEN, method=method) is None


@pytest.mark.parametrize("path", ["/livez", "/metrics", "/nothing"])
def test_no_path_is_exempt_from_the_token(path: str) -> None:
    """Away from loopback every path needs the token, those that do not exist too."""
    assert status(LAN, HOST, path=path) == 401


@pytest.mark.parametrize(
    "given",
    [
        [],
        [b""],
        [b"right"],
        [b"Bearer"],
        [b"Bearer "],
        [b"Bearer wrong"],
        [b"Bearer right2"],
        [b"Bearer righ"],
        [b"Bearer RIGHT"],
        [b"Basic right"],
        [b"Bearer right right"],
        [b"Bearer \xff"],
        [b"Bearer right", b"Bearer right"],
        [b"Bearer wrong", b"Bearer right"],
    ],
)
def test_anything_but_the_token_is_refused(given: list[bytes]) -> None:
    """One Authorization header, with the scheme Bearer and the very token."""
    headers = [(b"authorization", value) for value in given]

    assert status(LAN, HOST, *headers) == 401


def test_the_scheme_is_spelled_as_one_likes_and_tokens_are_utf8() -> None:
    """``bearer`` is ``Bearer``, and a token outside ASCII is compared as UTF-8."""
    access = Access(host="192.168.1.5", loopback=False, token="schlüssel")

    assert status(access, HOST, (b"authorization", "bearer schlüssel".encode())) is None


def test_without_a_token_nothing_that_needs_one_is_answered() -> None:
    """No token means that none is right; an empty one least of all."""
    access = Access(host="192.168.1.5", loopback=False, token=None)

    assert status(access, HOST) == 401
    assert status(access, HOST, (b"authorization", b"Bearer ")) == 401
    assert status(access, HOST, (b"authorization", b"Bearer None")) == 401


def test_the_token_is_not_shown() -> None:
    """The representation that a log or a traceback may hold leaves the token out."""
    assert "right" not in repr(LAN)
