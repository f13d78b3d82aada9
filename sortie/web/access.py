"""The rules for Host, Origin, token and session that decide which requests are answered; pure.

DNS rebinding: a page can make a browser send requests to this machine under a host name of the
page's own. So Host and Origin must name this daemon by an address or name that it knows.
Same site: a signed-in browser sends its cookie also with requests that pages of other programs on
this machine cause. So a command is obeyed only from the daemon's own pages.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from msgspec import Struct, field

from sortie.model.addresses import canonical_address, canonical_name, is_loopback
from sortie.model.hiding import repr_without
from sortie.web.sessions import BrowserSessions

PROBES = frozenset({"/livez", "/readyz"})
"""Paths on which Host and Origin are not looked at: a prober often knows an address only."""

SIGN_IN = "/sign-in"
"""The path to which a one-time code is brought, which is all it needs."""

_OPEN_METHODS = frozenset({"GET", "HEAD"})
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""


class Access(Struct, frozen=True, kw_only=True):
    """What the rules go by.

    ``host`` is the address that was asked for, ``names`` are further names of this machine
    by which it may be called. ``loopback``: only this machine can connect.
    """

    host: str
    loopback: bool
    token: str | None = None
    names: tuple[str, ...] = ()
    sessions: BrowserSessions | None = None

    __repr__ = repr_without("token", "sessions")


class Caller(StrEnum):
    """The sender of a request, as far as it shows: a signed-in browser has a ``SESSION``."""

    ANYBODY = "anybody"
    SESSION = "session"
    TOKEN = "token"


class RequestHead(Struct, frozen=True, kw_only=True):
    """A request as far as access goes; ``local_address`` is where its connection arrived."""

    method: str
    path: str
    headers: Headers
    local_address: str | None = None


class Refusal(Struct, frozen=True, kw_only=True):
    """Why a request is not answered."""

    status: int
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


def refusal(access: Access, request: RequestHead) -> Refusal | None:
    """Return why a request may not be answered, None where it may."""
    if request.path not in PROBES and not _names_this_machine(access, request):
        return Refusal(
            status=403,
            message="Host and Origin must name the address that Sortie is bound to, or loopback",
        )
    caller = caller_of(access, request)
    if caller is Caller.ANYBODY and _needs_token(access, request):
        return Refusal(
            status=401,
            message="this request needs the header 'Authorization: Bearer TOKEN', or a browser that"
            " is signed in: see 'sortie open'",
        )
    if caller is Caller.SESSION and not _is_read(request) and not _is_from_own_page(request):
        return Refusal(
            status=403,
            message="a browser's command must come from a page of Sortie's own, with its Origin",
        )
    return None


def caller_of(access: Access, request: RequestHead) -> Caller:
    """Return the kind of sender of a request."""
    if _holds_token(access, request.headers):
        return Caller.TOKEN
    if access.sessions is None:
        return Caller.ANYBODY
    sessions = sessions_in(request.headers, access.sessions.cookie)
    return Caller.SESSION if any(map(access.sessions.is_open, sessions)) else Caller.ANYBODY


def sessions_in(headers: Headers, cookie: str) -> list[str]:
    """Return the values of a cookie, of which a request may hold several."""
    pairs = (pair.strip() for header in _values(headers, b"cookie") for pair in header.split(";"))
    found = (pair.partition("=") for pair in pairs)
    return [value for name, _, value in found if name == cookie]


def canonical_host(authority: str) -> str | None:
    """Return the host of ``host[:port]`` in the form in which hosts are compared; None if bad.

    Names are in lower case without a final dot; addresses are as ``ipaddress`` writes them, an
    IPv4 address inside IPv6 as IPv4.
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None or int(match["port"] or 1) not in range(1, 65536):
        return None
    host = match["host"]
    if not host.startswith("["):
        return canonical_name(host)
    try:
        return canonical_address(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return None


def _names_this_machine(access: Access, request: RequestHead) -> bool:
    hosts = _values(request.headers, b"host")
    origins = _values(request.headers, b"origin")
    if len(hosts) != 1 or len(origins) > 1:
        return False
    ours = {canonical_name(name) for name in (access.host, *access.names)}
    if request.local_address is not None:
        ours.add(canonical_name(request.local_address))
    return all(
        name is not None and (name in ours or is_loopback(name))
        for name in (canonical_host(hosts[0]), *map(_origin_host, origins))
    )


def _origin_host(origin: str) -> str | None:
    """Return the canonical host of ``http[s]://host[:port]``; None for ``null`` and others."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or parts.path or parts.query or parts.fragment:
        return None
    return canonical_host(parts.netloc)


def _needs_token(access: Access, request: RequestHead) -> bool:
    if request.path == SIGN_IN and _is_read(request):
        return False
    forwarded = any(
        name == b"forwarded" or name.startswith(b"x-forwarded") for name, _ in request.headers
    )
    return not access.loopback or forwarded or not _is_read(request)


def _is_read(request: RequestHead) -> bool:
    return request.method in _OPEN_METHODS


def _is_from_own_page(request: RequestHead) -> bool:
    """Tell whether Origin is the very address, port included, that the request was sent to."""
    origins = _values(request.headers, b"origin")
    hosts = _values(request.headers, b"host")
    sites = _values(request.headers, b"sec-fetch-site")
    if len(origins) != 1 or len(hosts) != 1 or sites not in ([], ["same-origin"]):
        return False
    scheme, _, authority = origins[0].lower().partition("://")
    default = {"http": ":80", "https": ":443"}.get(scheme)
    if default is None:
        return False
    return authority.removesuffix(default) == hosts[0].lower().removesuffix(default)


def _holds_token(access: Access, headers: Headers) -> bool:
    given = _values(headers, b"authorization")
    if access.token is None or len(given) != 1:
        return False
    scheme, _, token = given[0].partition(" ")
    matches = hmac.compare_digest(token.strip().encode("latin-1"), access.token.encode())
    return matches and scheme.lower() == "bearer"


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == name]
