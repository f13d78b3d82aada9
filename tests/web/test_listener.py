"""Listening: which port is taken, and what is said when none can be."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
import trio

from sortie.web.listener import PORTS_TO_TRY, ListenAddress, ListenError, listen


def occupy(port: int) -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", port))
    sock.listen()
    return sock


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on, with free ports after it."""
    with closing(occupy(0)) as sock:
        yield int(sock.getsockname()[1])


async def test_port_0_takes_any_free_port_and_knows_it() -> None:
    """The URL names the port that was really taken."""
    listener = await listen(ListenAddress(host="127.0.0.1", port=0))

    with closing(listener):
        (sock,) = listener.sockets
        assert sock.getsockname() == ("127.0.0.1", listener.port)
        assert listener.url == f"http://127.0.0.1:{listener.port}/"
        assert listener.wanted_port is None
        assert listener.loopback
        assert not sock.get_inheritable()


async def test_a_taken_default_port_moves_on_and_says_so(taken: int) -> None:
    """The next free port is used, and the wanted one is remembered for a warning."""
    listener = await listen(ListenAddress(host="127.0.0.1", port=taken, asked=False))

    with closing(listener):
        assert taken < listener.port <= taken + PORTS_TO_TRY
        assert listener.wanted_port == taken


async def test_a_taken_port_that_was_asked_for_is_an_error(taken: int) -> None:
    """No other port is tried, and the message says what to do."""
    with pytest.raises(ListenError) as caught:
        await listen(ListenAddress(host="127.0.0.1", port=taken, asked=True))

    assert str(caught.value) == (
        f"port {taken} on 127.0.0.1 is taken: stop what uses it, or choose another with "
        "server.port or --port (0: no server)"
    )


@pytest.mark.parametrize(
    "host", ["no-such-host.invalid", "bad host", "x" * 300, "a..b", "exa\x00mple"]
)
async def test_an_unknown_host_is_an_error(host: str) -> None:
    """A name that resolves to nothing is named, with advice, without a traceback."""
    with pytest.raises(ListenError, match=r"cannot be resolved: .*; use an address of"):
        await listen(ListenAddress(host=host, port=0))


async def test_an_address_of_another_machine_is_an_error() -> None:
    """An address that is not ours cannot be bound, and the message says so."""
    with pytest.raises(ListenError) as caught:
        await listen(ListenAddress(host="192.0.2.1", port=0, token_given=True))

    assert str(caught.value) == (
        "cannot listen on 192.0.2.1 port 0: Cannot assign requested address; "
        "use an address of this machine, such as 127.0.0.1"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
async def test_others_may_connect_only_where_a_token_was_given(host: str) -> None:
    """Without a configured token an address beyond loopback is not even bound."""
    with pytest.raises(ListenError) as caught:
        await listen(ListenAddress(host=host, port=0))

    assert str(caught.value) == (
        f"server.host {host} can be reached from other machines: set server.auth_token to a $VAR "
        "that holds a token, or use 127.0.0.1"
    )


class Names(trio.abc.HostnameResolver):
    """Knows one name, which stands for several addresses."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses

    async def getaddrinfo(  # type: ignore[override]
        self, host: object, port: object, *_rest: object
    ) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self._addresses
        ]

    async def getnameinfo(self, sockaddr: object, flags: int) -> tuple[str, str]:
        raise AssertionError("nobody asks for names")


@pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2")
async def test_all_addresses_of_a_name_get_one_port() -> None:
    """A name is bound at each of its addresses that this machine has, on one port."""
    trio.socket.set_custom_hostname_resolver(Names("127.0.0.1", "192.0.2.1", "127.0.0.2"))

    listener = await listen(ListenAddress(host="many.example", port=0, token_given=True))

    with closing(listener):
        assert [sock.getsockname() for sock in listener.sockets] == [
            ("127.0.0.1", listener.port),
            ("127.0.0.2", listener.port),
        ]


@pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2")
async def test_a_port_that_is_taken_on_one_address_is_left_on_all(taken: int) -> None:
    """What was bound before the conflict is given back."""
    trio.socket.set_custom_hostname_resolver(Names("127.0.0.2", "127.0.0.1"))

    with pytest.raises(ListenError, match="is taken"):
        await listen(ListenAddress(host="many.example", port=taken))

    with socket.socket() as sock:
        sock.bind(("127.0.0.2", taken))


async def test_one_address_of_many_beyond_loopback_needs_a_token() -> None:
    """A name that also stands for an address beyond loopback is not loopback."""
    trio.socket.set_custom_hostname_resolver(Names("127.0.0.1", "192.0.2.1"))

    with pytest.raises(ListenError, match="can be reached from other machines"):
        await listen(ListenAddress(host="many.example", port=0))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:{}/"),
        ("127.0.0.2", "http://127.0.0.2:{}/"),
        ("localhost", "http://127.0.0.1:{}/"),
        ("0.0.0.0", "http://127.0.0.1:{}/"),
        ("0", "http://127.0.0.1:{}/"),
        ("::1", "http://[::1]:{}/"),
        ("::", "http://[::1]:{}/"),
    ],
)
async def test_this_machine_reaches_it_without_a_name(host: str, url: str) -> None:
    """The address for commands on this machine is a number, loopback for a wildcard, and works."""
    try:
        listener = await listen(ListenAddress(host=host, port=0, token_given=True))
    except ListenError:
        pytest.skip(f"this machine has no {host}")
    with closing(listener):
        assert listener.local_url in {
            url.format(listener.port),
            f"http://[::1]:{listener.port}/" if host == "localhost" else "",
        }
        address = listener.local_url.removeprefix("http://").removesuffix("/").rpartition(":")[0]
        await (await trio.open_tcp_stream(address.strip("[]"), listener.port)).aclose()
