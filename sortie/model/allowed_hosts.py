"""Which hosts an agent behind a wall may reach: the entries of a list, and what each covers; pure.

Rule 1: an entry without a port covers the ports of the web, 80 and 443, and no others.
Rule 2: a name is allowed for what stands in the list; an address, for what its network is. Both
have to hold, so that whoever owns a name that is allowed cannot have it point into a network that
is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum, auto
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

from msgspec import Struct

from sortie.model.addresses import canonical_address, is_loopback

WEB_PORTS = frozenset({80, 443})

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ENTRY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(:(?P<port>[0-9]{1,5}))?")
_LONGEST_NAME = 253


class Network(Enum):
    """What kind of network an address belongs to."""

    PUBLIC = auto()
    PRIVATE = auto()  # machines of a team or a provider
    SPECIAL = auto()  # this machine, its link, services that tell a machine its secrets


class AllowedHost(Struct, frozen=True, kw_only=True):
    """An entry: a host in the form hosts are compared in, or, with ``subdomains``, all below it.

    Without a host and with ``subdomains`` it is every host whose address is public.
    """

    host: str
    port: int | None = None
    subdomains: bool = False

    def covers(self, host: str, port: int) -> bool:
        """Tell whether the entry is about a host, in canonical form, at a port."""
        ports = WEB_PORTS if self.port is None else {self.port}
        if port not in ports:
            return False
        if not self.subdomains:
            return host == self.host
        return not self.host or host.endswith(f".{self.host}")

    def permits(self, host: str, address: IPv4Address | IPv6Address) -> bool:
        """Tell whether a host that the entry covers may be reached at an address.

        A public address is never a danger. Somebody who writes one exact name with a port means
        one server, which may well be of their own network; a name without a port, or many names,
        mean sites of the web. This machine, and services for machines such as 169.254.169.254, are
        reached only where they stand in the list themselves.
        """
        match network_of(address):
            case Network.PUBLIC:
                return True
            case Network.PRIVATE:
                return not self.subdomains and (self.port is not None or _is_address(host))
            case Network.SPECIAL:
                plain = _is_address(host) or (is_loopback(host) and self.port is not None)
                return not self.subdomains and plain


def allowed_host(text: str) -> AllowedHost:
    """Read an entry: ``host``, ``*.host``, ``*``, each perhaps with ``:port``.

    Raises ValueError, which says what is wrong with it.
    """
    entry = text.strip()
    if "/" in entry or "@" in entry:
        raise ValueError("must be a host, perhaps with a port, and not a URL")
    if _is_address(entry):  # of IPv6, without brackets
        return AllowedHost(host=canonical_host(entry))
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise ValueError("must be host, *.host or host:port; an IPv6 address with a port: [::1]:80")
    host, digits = found["host"], found["port"]
    port = None if digits is None else int(digits)
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"has the port {port}, and ports are 1 to 65535")
    if host == "*":
        return AllowedHost(host="", port=port, subdomains=True)
    below = host.removeprefix("*.")
    known = canonical_host(below)
    if below != host and _is_address(known):
        raise ValueError("must not have *. before an address")
    return AllowedHost(host=known, port=port, subdomains=below != host)


def covering(entries: Iterable[AllowedHost], host: str, port: int) -> list[AllowedHost]:
    """Return the entries that cover a host, in canonical form, at a port."""
    return [entry for entry in entries if entry.covers(host, port)]


def canonical_host(text: str) -> str:
    """Return a name or an address, IPv6 with brackets or without, in the form for comparing.

    Raises ValueError where it is neither: what one program takes for a name and another for an
    address, such as 127.1 and 0x7f.1, is neither.
    """
    name = text.removeprefix("[").removesuffix("]") if _in_brackets(text) else text
    try:
        return canonical_address(_address(name))
    except ValueError:
        pass
    name = text.removesuffix(".").lower()
    if not name.isascii():
        name = _to_ascii(name)
    labels = name.split(".")
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise ValueError(f"{text[:80]!r} is not a host")
    if _NUMBER.fullmatch(labels[-1]):
        raise ValueError(f"{text[:80]!r} is neither a name nor an address as it is usually written")
    return name


def network_of(address: IPv4Address | IPv6Address) -> Network:
    """Return the network of an address; one that carries an IPv4 address is where that one is."""
    carried = _carried(address)
    if carried is not None:
        return max(network_of(carried), _own_network(address), key=lambda kind: kind.value)
    return _own_network(address)


def _own_network(address: IPv4Address | IPv6Address) -> Network:
    if address in _FOR_MACHINES:
        return Network.SPECIAL
    if any(address in network for network in _PRIVATE if network.version == address.version):
        return Network.PRIVATE
    if isinstance(address, IPv6Address) and any(address in network for network in _CARRIERS):
        return Network.PUBLIC
    is_public = address.is_global and not address.is_multicast
    return Network.PUBLIC if is_public else Network.SPECIAL


_PRIVATE = tuple(
    map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"))
)
_FOR_MACHINES = frozenset(
    map(ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
"""Services that tell a machine of a cloud its secrets, outside of the networks of a link."""

_NAT64 = IPv6Network("64:ff9b::/96")
_CARRIERS = (_NAT64, IPv6Network("2002::/16"), IPv6Network("::ffff:0:0/96"))
_COMPATIBLE = IPv6Network("::/96")


def _carried(address: IPv4Address | IPv6Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _is_address(text: str) -> bool:
    try:
        _address(text)
    except ValueError:
        return False
    return True


def _address(text: str) -> IPv4Address | IPv6Address:
    if "%" in text:
        raise ValueError("an address with a zone means something on one machine only")
    return ip_address(text)


def _in_brackets(text: str) -> bool:
    return text.startswith("[") and text.endswith("]") and ":" in text


def _to_ascii(name: str) -> str:
    import idna  # its tables are large, and few names need them

    try:
        return idna.encode(name, uts46=True).decode("ascii")
    except idna.IDNAError:
        raise ValueError(f"{name[:80]!r} is not a host") from None
