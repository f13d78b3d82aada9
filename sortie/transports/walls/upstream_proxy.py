"""The proxy by which the daemon's machine reaches the internet, as HTTPS_PROXY names it.

It is asked for a tunnel to a name, and looks the name up itself. What NO_PROXY names is reached
without it: names with all below them, addresses, networks, and ``*`` for all.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

import trio
from msgspec import Struct

from sortie.model.hiding import repr_without
from sortie.transports.walls.request_target import authority

_VARIABLES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_LONGEST_HEAD = 16 * 1024  # bytes of an answer


class TunnelRefused(Exception):
    """The proxy opens no tunnel; the text says why, without its password."""


class UpstreamProxy(Struct, frozen=True, kw_only=True):
    """A proxy that speaks plain HTTP. ``authorization`` is its header's value, "" for none, and
    ``bypassed`` the text of NO_PROXY. ``host`` is "" where its address cannot be used."""

    host: str
    port: int
    variable: str
    authorization: str = ""
    bypassed: str = ""

    __repr__ = repr_without("authorization")

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> UpstreamProxy | None:
        """Return the proxy that an environment names, None without one."""
        variable = next((name for name in _VARIABLES if environ.get(name, "").strip()), None)
        if variable is None:
            return None
        address = environ[variable].strip()
        bypassed = environ.get("no_proxy") or environ.get("NO_PROXY", "")
        try:
            parts = urlsplit(address if "://" in address else f"http://{address}")
            host, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return cls(host="", port=0, variable=variable, bypassed=bypassed)
        if parts.scheme != "http":
            host = ""
        authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return cls(
            host=host,
            port=port,
            variable=variable,
            authorization=authorization,
            bypassed=bypassed,
        )

    def is_for(self, host: str) -> bool:
        """Tell whether a host is reached by it."""
        entries = (entry.strip().lower() for entry in self.bypassed.split(","))
        return not any(_covers(entry, host) for entry in entries if entry)

    async def open_tunnel(self, stream: trio.abc.Stream, host: str, port: int) -> None:
        """Have a connection to the proxy lead to a host. Raises TunnelRefused."""
        place = authority(host, port, 0)
        head = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
        if self.authorization:
            head.append(f"Proxy-Authorization: {self.authorization}")
        try:
            await stream.send_all("\r\n".join([*head, "", ""]).encode("latin-1"))
            answer = await _head(stream)
        except trio.BrokenResourceError:
            answer = b""
        _, _, rest = answer.partition(b" ")
        status = rest[:3].decode("ascii", "replace")
        if status.startswith("2"):
            return
        if not answer:
            raise TunnelRefused(f"the proxy of {self.variable} broke off")
        if status in ("401", "407"):  # tinyproxy says the former
            raise TunnelRefused(f"the proxy of {self.variable} wants another name and password")
        raise TunnelRefused(f"the proxy of {self.variable} answers {status} for {place}")


def _covers(entry: str, host: str) -> bool:
    """Tell whether an entry of NO_PROXY is about a host."""
    with suppress(ValueError):
        return ip_address(host) in ip_network(entry, strict=False)
    name = entry.removeprefix("*").removeprefix(".")
    return entry == "*" or host == name or (bool(name) and host.endswith(f".{name}"))


async def _head(stream: trio.abc.Stream) -> bytes:
    """Return the head of an answer, and take nothing that follows it; b"" where none comes."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = await stream.receive_some(1)
        if not byte or len(head) > _LONGEST_HEAD:
            return b""
        head += byte
    return bytes(head)
