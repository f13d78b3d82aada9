"""Requests that are meant to get past the list: each is refused, and nothing is connected to."""

from __future__ import annotations

import pytest

from tests.transports.walls.network import MadeUpNetwork, answering, ask

ALLOWED = (
    "docs.example",
    "*.wild.example",
    "rebind.example",
    "models.corp:8443",
    "pinned.example:443",
    "mixed.example",
    "münchen.example",
    "93.184.215.77",
    "10.1.2.3:8080",
)

NAMES = {
    "docs.example": ["93.184.215.14"],
    "a.wild.example": ["93.184.215.14"],
    "lan.wild.example": ["10.0.0.5"],
    "meta.wild.example": ["169.254.169.254"],
    "rebind.example": ["127.0.0.1"],
    "models.corp": ["10.0.0.7"],
    "pinned.example": ["169.254.169.254"],
    "mixed.example": ["10.0.0.5", "93.184.215.14"],
    "xn--mnchen-3ya.example": ["93.184.215.14"],
    "evil.example": ["93.184.215.66"],
    "localhost": ["127.0.0.1"],
}

NOT_LISTED = 403, b"sandbox.network does not list"
NOT_CLEAR = 400, b""


def connect(authority: str, *headers: str) -> bytes:
    return request("CONNECT", authority, *headers)


def get(target: str, *headers: str, version: str = "1.1") -> bytes:
    return request("GET", target, *headers, version=version)


def request(method: str, target: str, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"{method} {target} HTTP/{version}", *(headers or ("Host: docs.example",))]
    return "\r\n".join([*lines, "", ""]).encode("utf-8")


HOSTILE: dict[str, tuple[bytes, tuple[int, bytes]]] = {
    "another host": (connect("evil.example:443"), NOT_LISTED),
    "another host, plain": (get("http://evil.example/"), NOT_LISTED),
    "host of the list in the header": (
        get("http://evil.example/", "Host: docs.example"),
        NOT_LISTED,
    ),
    "host of the list as user": (get("http://docs.example@evil.example/"), NOT_CLEAR),
    "user and password": (get("http://docs.example:80@evil.example/"), NOT_CLEAR),
    "user in a tunnel": (connect("docs.example@evil.example:443"), NOT_CLEAR),
    "listed host as label": (connect("docs.example.evil.example:443"), NOT_LISTED),
    "end of a listed name": (connect("evildocs.example:443"), NOT_LISTED),
    "wildcard without its dot": (connect("evilwild.example:443"), NOT_LISTED),
    "wildcard's own host": (connect("wild.example:443"), NOT_LISTED),
    "below a host that is listed alone": (connect("a.docs.example:443"), NOT_LISTED),
    "another port": (connect("docs.example:22"), NOT_LISTED),
    "port of mail": (connect("docs.example:25"), NOT_LISTED),
    "another port, plain": (get("http://docs.example:8080/"), NOT_LISTED),
    "usual port of a host with its own": (connect("models.corp:443"), NOT_LISTED),
    "no port": (connect("docs.example"), NOT_CLEAR),
    "port 0": (connect("docs.example:0"), NOT_CLEAR),
    "port too large": (connect("docs.example:65979"), NOT_CLEAR),
    "port with a sign": (connect("docs.example:+443"), NOT_CLEAR),
    "two ports": (connect("docs.example:443:443"), NOT_CLEAR),
    "loopback": (connect("127.0.0.1:80"), NOT_LISTED),
    "loopback of IPv6": (connect("[::1]:80"), NOT_LISTED),
    "loopback by name": (get("http://localhost/"), NOT_LISTED),
    "loopback as one number": (get("http://2130706433/"), NOT_CLEAR),
    "loopback in hexadecimal": (get("http://0x7f.1/"), NOT_CLEAR),
    "loopback in octal": (get("http://0177.0.0.1/"), NOT_CLEAR),
    "loopback cut short": (get("http://127.1/"), NOT_CLEAR),
    "this machine": (connect("0.0.0.0:80"), NOT_LISTED),
    "unspecified of IPv6": (connect("[::]:80"), NOT_LISTED),
    "metadata": (get("http://169.254.169.254/latest/meta-data/"), NOT_LISTED),
    "metadata inside IPv6": (get("http://[::ffff:169.254.169.254]/"), NOT_LISTED),
    "metadata by NAT64": (get("http://[64:ff9b::a9fe:a9fe]/"), NOT_LISTED),
    "address with a zone": (get("http://[fe80::1%25eth0]/"), NOT_CLEAR),
    "brackets around a name": (connect("[docs.example]:443"), NOT_CLEAR),
    "name that points to loopback": (connect("rebind.example:443"), (403, b"it is at 127.0.0.1")),
    "name that points to metadata": (
        get("http://meta.wild.example/"),
        (
            403,
            b"it is at 169.254.169.254, which sandbox.network allows by 169.254.169.254:80 alone",
        ),
    ),
    "pinned name that points to metadata": (
        connect("pinned.example:443"),
        (403, b"it is at 169.254.169.254"),
    ),
    "wildcard that points into the network": (
        connect("lan.wild.example:443"),
        (403, b"a private address, which sandbox.network allows by lan.wild.example:443 alone"),
    ),
    "backslash": (get("http://evil.example\\@docs.example/"), NOT_CLEAR),
    "backslash behind the host": (get("http://docs.example\\.evil.example/"), NOT_CLEAR),
    "hash": (get("http://evil.example#@docs.example/"), NOT_CLEAR),
    "question mark": (get("http://evil.example?@docs.example/"), NOT_LISTED),
    "encoded dot": (get("http://docs%2eexample/"), NOT_CLEAR),
    "encoded NUL": (get("http://docs.example%00.evil.example/"), NOT_CLEAR),
    "empty host": (get("http:///etc/passwd"), NOT_CLEAR),
    "empty label": (get("http://docs..example/"), NOT_CLEAR),
    "two dots at the end": (get("http://docs.example../"), NOT_CLEAR),
    "name over 253 characters": (get(f"http://{'a.' * 130}docs.example/"), NOT_CLEAR),
    "label over 63 characters": (get(f"http://{'a' * 64}.wild.example/"), NOT_CLEAR),
    "https in absolute form": (get("https://docs.example/"), NOT_CLEAR),
    "another scheme": (get("ftp://docs.example/"), NOT_CLEAR),
    "file": (get("file:///etc/passwd"), NOT_CLEAR),
    "no scheme": (get("docs.example/"), NOT_CLEAR),
    "the proxy itself": (get("/"), (404, b"this is a proxy")),
    "the proxy itself, by Host": (get("/", "Host: evil.example"), (404, b"")),
    "asterisk": (request("OPTIONS", "*"), NOT_CLEAR),
    "length and coding": (
        request(
            "POST",
            "http://docs.example/",
            "Host: docs.example",
            "Content-Length: 4",
            "Transfer-Encoding: chunked",
        )
        + b"0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        NOT_CLEAR,
    ),
    "two lengths": (
        request(
            "POST", "http://docs.example/", "Host: a", "Content-Length: 4", "Content-Length: 5"
        ),
        NOT_CLEAR,
    ),
    "length that is no number": (
        request("POST", "http://docs.example/", "Host: a", "Content-Length: +4"),
        NOT_CLEAR,
    ),
    "two codings": (
        request("POST", "http://docs.example/", "Host: a", "Transfer-Encoding: chunked, gzip"),
        (501, b""),
    ),
    "coding with a blank": (
        request("POST", "http://docs.example/", "Host: a", "Transfer-Encoding : chunked"),
        NOT_CLEAR,
    ),
    "coding of HTTP/1.0": (
        request("POST", "http://docs.example/", "Transfer-Encoding: chunked", version="1.0"),
        NOT_CLEAR,
    ),
    "two hosts": (
        get("http://docs.example/", "Host: docs.example", "Host: evil.example"),
        NOT_CLEAR,
    ),
    "no host": (b"GET http://docs.example/ HTTP/1.1\r\n\r\n", NOT_CLEAR),
    "body of a tunnel": (
        connect("docs.example:443", "Host: docs.example", "Content-Length: 4"),
        NOT_CLEAR,
    ),
    "TRACE": (request("TRACE", "http://docs.example/"), (405, b"TRACE")),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, b"")),
    "HTTP/9": (get("http://docs.example/", "Host: x", version="9.9"), (505, b"")),
    "HTTP/0.9": (b"GET http://docs.example/\r\n\r\n", NOT_CLEAR),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200), NOT_CLEAR),
    "SOCKS": (b"\x05\x01\x00\r\n\r\n", NOT_CLEAR),
    "NUL in the target": (get("http://docs.example\x00.evil.example/"), NOT_CLEAR),
    "line feed in the target": (get("http://docs.example/\nHost: evil.example"), NOT_CLEAR),
    "NUL in a header": (get("http://docs.example/", "Host: docs.example", "X: a\x00b"), NOT_CLEAR),
    "letters that are not ASCII": (get("http://döcs.example/"), NOT_CLEAR),
    "letters that look alike": (get("http://xn--dcs-jmc.example/"), NOT_LISTED),
    "a head without an end": (get("http://docs.example/", *["X: " + "a" * 900] * 200), (431, b"")),
    "a line without an end": (b"GET http://docs.example/" + b"a" * 50_000, (431, b"")),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_requests_are_refused(name: str) -> None:
    """The status is the one of the table, and no server hears anything."""
    raw, (status, told) = HOSTILE[name]
    net = MadeUpNetwork(names=dict(NAMES))

    async with (
        net.server("evil.example", 80, answering()),
        net.server("docs.example", 80, answering()),
        net.proxy(*ALLOWED) as url,
    ):
        said = await ask(url, raw)

    assert said.startswith(f"HTTP/1.1 {status} ".encode())
    assert told in said
    assert said.count(b"HTTP/1.1 ") == 1
    assert (net.connected, net.seen) == ([], [])
    assert len(net.refused) == 1
    assert not net.ended


TAKEN: dict[str, tuple[bytes, tuple[str, int]]] = {
    "capital letters": (get("http://DOCS.Example/"), ("93.184.215.14", 80)),
    "dot at the end": (get("http://docs.example./"), ("93.184.215.14", 80)),
    "its port": (get("http://docs.example:80/"), ("93.184.215.14", 80)),
    "port with zeros": (get("http://docs.example:00080/"), ("93.184.215.14", 80)),
    "a query at once": (get("http://docs.example?x=1"), ("93.184.215.14", 80)),
    "tunnel": (connect("docs.example:443"), ("93.184.215.14", 443)),
    "tunnel to the other port": (connect("docs.example:80"), ("93.184.215.14", 80)),
    "below a wildcard": (connect("a.wild.example:443"), ("93.184.215.14", 443)),
    "name of other letters": (connect("xn--mnchen-3ya.example:443"), ("93.184.215.14", 443)),
    "server of the team, with its port": (connect("models.corp:8443"), ("10.0.0.7", 8443)),
    "listed address": (get("http://93.184.215.77/"), ("93.184.215.77", 80)),
    "listed address inside IPv6": (get("http://[::ffff:93.184.215.77]/"), ("93.184.215.77", 80)),
    "listed private address": (get("http://10.1.2.3:8080/"), ("10.1.2.3", 8080)),
    "one address of two": (connect("mixed.example:443"), ("93.184.215.14", 443)),
}


@pytest.mark.parametrize("name", TAKEN)
async def test_what_is_listed_is_reached_however_it_is_written(name: str) -> None:
    """The same table of allowed hosts lets these through, to the address that was checked."""
    raw, place = TAKEN[name]
    net = MadeUpNetwork(names=dict(NAMES))

    async with net.proxy(*ALLOWED) as url:
        said = await ask(url, raw)

    assert said.startswith(b"HTTP/1.1 502 ")  # nobody is there
    assert net.connected == [place]
    assert not net.refused
