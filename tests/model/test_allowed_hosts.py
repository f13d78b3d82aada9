"""Entries of a list of allowed hosts, and the networks of addresses."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from sortie.model.allowed_hosts import AllowedHost, Network, allowed_host, covering, network_of


@pytest.mark.parametrize(
    ("text", "host", "port", "subdomains"),
    [
        ("docs.example", "docs.example", None, False),
        (" Docs.Example. ", "docs.example", None, False),
        ("docs.example:8443", "docs.example", 8443, False),
        ("*.docs.example", "docs.example", None, True),
        ("*.docs.example:22", "docs.example", 22, True),
        ("*", "", None, True),
        ("*:8443", "", 8443, True),
        ("münchen.example", "xn--mnchen-3ya.example", None, False),
        ("10.1.2.3", "10.1.2.3", None, False),
        ("10.1.2.3:11434", "10.1.2.3", 11434, False),
        ("::1", "::1", None, False),
        ("[FE80::1]:80", "fe80::1", 80, False),
        ("::ffff:10.1.2.3", "10.1.2.3", None, False),
        ("my_host", "my_host", None, False),
    ],
)
def test_an_entry_is_read(text: str, host: str, port: int | None, subdomains: bool) -> None:
    """Names are in lower case, without a dot at their end and in ASCII; addresses are plain."""
    assert allowed_host(text) == AllowedHost(host=host, port=port, subdomains=subdomains)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://docs.example",
        "docs.example/path",
        "user@docs.example",
        "docs.example:",
        "docs.example:0",
        "docs.example:70000",
        "docs.example:http",
        "*.10.1.2.3",
        "*docs.example",
        "docs.*.example",
        "**.docs.example",
        "127.1",
        "0x7f.0.0.1",
        "[docs.example]",
        "fe80::1%eth0",
        "docs..example",
        "-docs.example",
        "docs example",
        "a" * 64 + ".example",
    ],
)
def test_what_is_no_entry_is_told(text: str) -> None:
    """A mistake is a sentence that begins where the name of the key ends."""
    with pytest.raises(ValueError, match=r"must|is n|has the port"):
        allowed_host(text)


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("93.184.215.14", Network.PUBLIC),
        ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", Network.PUBLIC),
        ("10.0.0.1", Network.PRIVATE),
        ("172.31.255.255", Network.PRIVATE),
        ("192.168.0.1", Network.PRIVATE),
        ("100.64.0.1", Network.PRIVATE),
        ("fd12::1", Network.PRIVATE),
        ("::ffff:10.0.0.1", Network.PRIVATE),
        ("64:ff9b::10.0.0.1", Network.PRIVATE),
        ("2002:a00:1::", Network.PRIVATE),
        ("127.0.0.1", Network.SPECIAL),
        ("127.255.0.1", Network.SPECIAL),
        ("0.0.0.0", Network.SPECIAL),
        ("169.254.169.254", Network.SPECIAL),
        ("100.100.100.200", Network.SPECIAL),
        ("168.63.129.16", Network.SPECIAL),
        ("fd00:ec2::254", Network.SPECIAL),
        ("224.0.0.1", Network.SPECIAL),
        ("255.255.255.255", Network.SPECIAL),
        ("240.0.0.1", Network.SPECIAL),
        ("198.18.0.1", Network.SPECIAL),
        ("::", Network.SPECIAL),
        ("::1", Network.SPECIAL),
        ("fe80::1", Network.SPECIAL),
        ("ff02::1", Network.SPECIAL),
        ("::ffff:169.254.169.254", Network.SPECIAL),
        ("::127.0.0.1", Network.SPECIAL),
        ("64:ff9b::7f00:1", Network.SPECIAL),
        ("2002:7f00:1::", Network.SPECIAL),
    ],
)
def test_networks_of_addresses(address: str, network: Network) -> None:
    """An address that carries another is where that one is."""
    assert network_of(ip_address(address)) is network


@pytest.mark.parametrize(
    ("entry", "host", "address", "permitted"),
    [
        ("docs.example", "docs.example", "93.184.215.14", True),
        ("docs.example", "docs.example", "10.0.0.1", False),
        ("docs.example:443", "docs.example", "10.0.0.1", True),
        ("docs.example:443", "docs.example", "127.0.0.1", False),
        ("*.docs.example:443", "a.docs.example", "10.0.0.1", False),
        ("*", "docs.example", "93.184.215.14", True),
        ("*", "10.0.0.1", "10.0.0.1", False),
        ("*", "127.0.0.1", "127.0.0.1", False),
        ("10.0.0.1", "10.0.0.1", "10.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1", True),
        ("169.254.169.254", "169.254.169.254", "169.254.169.254", True),
        ("localhost:443", "localhost", "127.0.0.1", True),
        ("localhost", "localhost", "127.0.0.1", False),
    ],
)
def test_what_an_entry_permits(entry: str, host: str, address: str, permitted: bool) -> None:
    """Private networks take an exact name with a port; this machine takes its own address."""
    (found,) = covering([allowed_host(entry)], host, 443)

    assert found.permits(host, ip_address(address)) is permitted
