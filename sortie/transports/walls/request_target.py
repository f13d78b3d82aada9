"""What a request to a proxy asks for, judged by its first line and headers alone; pure.

Rule: what two readers could take for two different things is refused, not interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import h11
from msgspec import Struct

from sortie.model.allowed_hosts import canonical_host

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as h11 gives them."""

_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@/\\%?#]+)(:(?P<port>[0-9]{1,5}))?")
_ABSOLUTE = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#\\]*)(?P<rest>([/?].*)?)"
)
_DOTS = re.compile(r"(\.|%2e){1,2}", re.IGNORECASE)


class RequestRefused(Exception):
    """A request is answered by a status and one sentence, which tells what is wrong with it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class TunnelTarget(Struct, frozen=True, kw_only=True):
    """``CONNECT``: bytes are passed on both ways."""

    host: str
    port: int


class RequestTarget(Struct, frozen=True, kw_only=True):
    """A request over plain HTTP for a server; ``path`` is what that is asked for."""

    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What the header Host says."""
        return authority(self.host, self.port, 80)


class RouteTarget(Struct, frozen=True, kw_only=True):
    """A request for the proxy itself; ``name`` is the first part of its path, ``path`` the rest."""

    name: str
    path: str


Target = TunnelTarget | RequestTarget | RouteTarget


def target_of(request: h11.Request) -> Target:
    """Return what a request asks for. Raises RequestRefused where that is not clear."""
    if request.http_version not in (b"1.0", b"1.1"):
        raise RequestRefused(505, "this proxy speaks version 1 of HTTP")
    if request.method == b"TRACE":
        raise RequestRefused(405, "this proxy passes no TRACE on: its answer repeats credentials")
    _check_framing(request)
    text = request.target.decode("ascii")
    if request.method == b"CONNECT":
        if header(request.headers, b"content-length") or header(
            request.headers, b"transfer-encoding"
        ):
            raise RequestRefused(400, "CONNECT has no body")
        host, port = _host_and_port(text, None)
        return TunnelTarget(host=host, port=port)
    if text.startswith("/"):
        return route_target(text)
    found = _ABSOLUTE.fullmatch(text)
    if found is None:
        raise RequestRefused(
            400, "a proxy is asked with CONNECT host:port or with http://host/path"
        )
    if found["scheme"].lower() != "http":
        raise RequestRefused(400, "a proxy is asked for all but http:// with CONNECT host:port")
    if "#" in found["rest"]:
        raise RequestRefused(400, "the address has a fragment, which is not for servers")
    host, port = _host_and_port(found["authority"], 80)
    rest = found["rest"]
    return RequestTarget(host=host, port=port, path=rest if rest.startswith("/") else f"/{rest}")


def authority(host: str, port: int, usual: int) -> str:
    """Return a host, with its port where that is not the usual one."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port == usual else f"{shown}:{port}"


def header(headers: Headers, name: bytes) -> list[bytes]:
    """Return all values of a header."""
    return [value for found, value in headers if found == name]


def has_dots(path: str) -> bool:
    """Tell whether a path has a part that means this directory or the one above, however written.

    Servers take a backslash, and an encoded slash, for a slash now and then.
    """
    parts = re.split(r"[/\\]|%2f|%5c", path.partition("?")[0], flags=re.IGNORECASE)
    return any(map(_DOTS.fullmatch, parts))


def _host_and_port(authority: str, default: int | None) -> tuple[str, int]:
    if "@" in authority:
        raise RequestRefused(400, "the address has a user name in it, which a proxy does not take")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise RequestRefused(400, "the address names no host and port")
    port = default if found["port"] is None else int(found["port"])
    if port is None or not 0 < port < 65536:
        raise RequestRefused(400, "the address needs a port from 1 to 65535")
    try:
        return canonical_host(found["host"]), port
    except ValueError as error:
        raise RequestRefused(400, str(error)) from None


def route_target(text: str) -> RouteTarget:
    """Return what a path asks the proxy itself for. Raises RequestRefused."""
    path, mark, query = text.partition("?")
    name, slash, rest = path[1:].partition("/")
    if "#" in text or has_dots(path):
        raise RequestRefused(400, "the path has parts that a server may take for others")
    return RouteTarget(name=name, path=f"/{rest}{mark}{query}" if slash else f"/{mark}{query}")


def _check_framing(request: h11.Request) -> None:
    """Refuse what two servers may cut into different requests."""
    lengths = header(request.headers, b"content-length")
    codings = header(request.headers, b"transfer-encoding")
    if len(lengths) > 1 or (lengths and codings):
        raise RequestRefused(400, "a request tells its length once")
    if codings and request.http_version == b"1.0":
        raise RequestRefused(400, "HTTP/1.0 knows no Transfer-Encoding")
