"""Who may ask what: the rules for Host, Origin and token, as plain functions.

A page in a browser can make that browser send requests to this machine, under a host name of its
own that it lets point here (DNS rebinding). So Host and Origin must name us as we know ourselves.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from sortie.model.addresses import canonical_address, canonical_name, is_loopback

PROBES = frozenset({"/livez", "/readyz"})
"""Paths on which Host and Origin are not looked at: a prober often knows an address only."""

_OPEN_METHODS = frozenset({"GET", "HEAD"})
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the rules go by.

    ``host`` is the address that was asked for, ``names`` are further names of this machine
    by which it may be called. ``loopback`` tells whether nobody but this machine can connect.
    """

    host: str
    loopback: bool
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """A request as far as access goes; ``local_address`` is where its connection arrived."""

    method: str
    path: str
    headers: Headers
    local_address: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
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
    if _needs_token(access, request) and not _holds_token(access, request.headers):
        return Refusal(
            status=401,
            message="this request needs the header 'Authorization: Bearer TOKEN'",
        )
    return None


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
    forwarded = any(
        name == b"forwarded" or name.startswith(b"x-forwarded") for name, _ in request.headers
    )
    return not access.loopback or forwarded or request.method not in _OPEN_METHODS


def _holds_token(access: Access, headers: Headers) -> bool:
    given = _values(headers, b"authorization")
    if access.token is None or len(given) != 1:
        return False
    scheme, _, token = given[0].partition(" ")
    matches = hmac.compare_digest(token.strip().encode("latin-1"), access.token.encode())
    return matches and scheme.lower() == "bearer"


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == name]
