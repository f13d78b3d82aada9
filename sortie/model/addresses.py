"""Host names and addresses in the one form in which they are compared."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w-]+(\.[\w-]+)*\.?")
_LOCAL_NAMES = {"localhost", "ip6-localhost"}


def canonical_name(host: str) -> str:
    """Return a name or an address, IPv6 without brackets, in the form hosts are compared in.

    It is in lower case, without a final dot; an IPv4 address inside IPv6 is written as IPv4.
    """
    name = host.lower().removesuffix(".")
    try:
        return canonical_address(ipaddress.ip_address(name))
    except ValueError:
        return name


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is this machine and nothing else."""
    name = canonical_name(host.strip("[]"))
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name in _LOCAL_NAMES


def canonical_address(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Write an address; one of IPv4 inside IPv6 as IPv4."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def is_endpoint(address: str) -> bool:
    """Tell whether an address is that of a server, perhaps with a path, and nothing else."""
    parts = split_endpoint(address)
    return parts is not None and not has_more(address, parts)


def split_endpoint(endpoint: str) -> SplitResult | None:
    """Return the parts of an address of a server, None where it is none."""
    if any(char.isspace() or not char.isprintable() for char in endpoint):
        return None
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        return None
    place = parts.netloc.rpartition("@")[2]
    host = place if place.endswith("]") else re.sub(r":\d*$", "", place)
    if parts.scheme not in ("http", "https") or port == 0 or not _HOST.fullmatch(host):
        return None
    return parts


def has_more(endpoint: str, parts: SplitResult) -> bool:
    """Tell whether an address has a user, a query or a fragment, be it an empty one."""
    return "@" in parts.netloc or "?" in endpoint or "#" in endpoint
