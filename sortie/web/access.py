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

PROBES = frozenset({"/livez", "/readyz"})
"""Paths on which Host and Origin are not looked at: a prober often knows an address only."""

_OPEN_METHODS = frozenset({"GET", "HEAD"})
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>[0-9]{1,5}))?")

Headers = Sequence[tuple[bytes, bytes]]
"""Names in lower case, as ASGI gives them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What the rules go by.

    ``host`` is the address that was asked to be bound, ``names`` are further names of this machine
    by which it may be called. ``loopback`` tells whether nobody but this machine can connect.
    """

    host: str
    loopback: bool
    token: str | None = field(default=None, repr=False)
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


def refusal(access: Access, asked: Asked) -> Refusal | None:
    """Return why a request may not be answered, None where it may."""
    if asked.path not in PROBES and not _named_well(access, asked):
        return Refusal(
            status=403,
            message="Host and Origin must name the address that Sortie is bound to, or loopback",
        )
    if _needs_token(access, asked) and not _holds_token(access, asked.headers):
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
        return _canonical_address(ipaddress.IPv6Address(host[1:-1]))
    except ValueError:
        return None


def canonical_name(host: str) -> str:
    """Return a name or an address, IPv6 without brackets, in the form hosts are compared in."""
    name = host.lower().removesuffix(".")
    try:
        return _canonical_address(ipaddress.ip_address(name))
    except ValueError:
        return name


def is_loopback(host: str) -> bool:
    """Tell whether a canonical host is this machine and nothing else."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _canonical_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _named_well(access: Access, asked: Asked) -> bool:
    hosts = _values(asked.headers, b"host")
    origins = _values(asked.headers, b"origin")
    if len(hosts) != 1 or len(origins) > 1:
        return False
    ours = {canonical_name(name) for name in (access.host, *access.names)}
    if asked.local_address is not None:
        ours.add(canonical_name(asked.local_address))
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


def _needs_token(access: Access, asked: Asked) -> bool:
    forwarded = any(
        name == b"forwarded" or name.startswith(b"x-forwarded") for name, _ in asked.headers
    )
    return not access.loopback or forwarded or asked.method not in _OPEN_METHODS


def _holds_token(access: Access, headers: Headers) -> bool:
    given = _values(headers, b"authorization")
    if access.token is None or len(given) != 1:
        return False
    scheme, _, token = given[0].partition(" ")
    matches = hmac.compare_digest(token.strip().encode("latin-1"), access.token.encode())
    return matches and scheme.lower() == "bearer"


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for key, value in headers if key.lower() == name]
