"""Host names and addresses in the one form in which they are compared."""

from __future__ import annotations

import ipaddress

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
