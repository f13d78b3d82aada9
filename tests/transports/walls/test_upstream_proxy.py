"""A run's proxy on a machine that reaches others by a proxy only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

import pytest
import trio

from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports.walls.destinations import connect_to
from sortie.transports.walls.proxied_credentials import proxied_credentials
from sortie.transports.walls.relay import Traffic, relay
from sortie.transports.walls.upstream_proxy import UpstreamProxy
from tests.transports.walls.network import (
    LIMIT,
    MadeUpNetwork,
    TestAuthority,
    answering,
    ask,
)

PASSWORD = "p@55-word"
ENVIRON = {"HTTPS_PROXY": "http://me:p%4055-word@proxy.corp:3128", "NO_PROXY": "near.corp, .lan"}


@dataclass
class CorporateProxy:
    """A proxy that knows the names of a network, and tells ``answer`` instead where it has one."""

    net: MadeUpNetwork
    heads: list[str] = field(default_factory=list)
    answer: bytes | None = None

    async def serve(self, stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += bytes(await stream.receive_some(1))
            self.heads.append(head.decode())
            if self.answer is not None:
                await stream.send_all(self.answer)
                return
            host, _, port = head.split()[1].decode().rpartition(":")
            address = self.net.names.get(host, [host])[0]
            here = self.net.ports[address, int(port)]
            async with await connect_to(ip_address("127.0.0.1"), here) as server:
                await stream.send_all(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
                await relay(stream, server, Traffic(), first=b"", idle_limit=LIMIT)


@asynccontextmanager
async def corporate_proxy(net: MadeUpNetwork) -> AsyncIterator[CorporateProxy]:
    """Have one at proxy.corp:3128, which is an address of the machine's own network."""
    made = CorporateProxy(net)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        net.names["proxy.corp"] = ["10.9.9.9"]
        net.ports["10.9.9.9", 3128] = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, made.serve, listeners)
        yield made
        nursery.cancel_scope.cancel()


def upstream(environ: Mapping[str, str] = ENVIRON) -> UpstreamProxy:
    found = UpstreamProxy.of(environ)
    assert found is not None
    return found


async def test_a_listed_name_is_reached_by_the_proxy_of_the_machine() -> None:
    """The name is told to it, with its credential, and looked up by nothing else."""
    net = MadeUpNetwork()

    async with (
        corporate_proxy(net) as corporate,
        net.server("docs.example", 80, answering(b"hello\n")),
        net.proxy("docs.example", upstream=upstream()) as url,
    ):
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: docs.example\r\n\r\n")
        refused = await ask(url, b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.endswith(b"\r\n\r\nhello\n")
    assert b" 403 " in refused
    assert net.asked == ["proxy.corp"]
    (head,) = corporate.heads
    assert head.startswith("CONNECT docs.example:80 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cEA1NS13b3Jk\r\n" in head


@pytest.mark.parametrize("host", ["near.corp", "deep.near.corp", "box.lan"])
async def test_what_no_proxy_names_is_reached_without_it(host: str) -> None:
    """By its address, which is checked as everywhere."""
    net = MadeUpNetwork()

    async with (
        corporate_proxy(net) as corporate,
        net.server(host, 80, answering(b"near\n"), address="10.1.2.3"),
        net.proxy(host, f"{host}:80", upstream=upstream()) as url,
    ):
        said = await ask(url, f"GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())

    assert said.endswith(b"near\n")
    assert corporate.heads == []


async def test_an_address_is_checked_and_this_machine_is_not_asked_of_the_proxy() -> None:
    """An address that is not listed itself, and localhost, go nowhere by it."""
    net = MadeUpNetwork()
    net.names["localhost"] = ["127.0.0.1"]

    async with (
        corporate_proxy(net) as corporate,
        net.proxy("*", "localhost", upstream=upstream()) as url,
    ):
        for host in ("169.254.169.254", "10.1.2.3", "localhost", "127.0.0.1"):
            said = await ask(url, f"GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert b" 403 " in said, host

    assert corporate.heads == []


async def test_a_key_goes_to_its_server_through_the_tunnel(tmp_path: Path) -> None:
    """Over TLS with the server itself: the proxy between sees neither key nor placeholder."""
    net, authority = MadeUpNetwork(), TestAuthority(tmp_path)
    endpoint = ModelEndpoint(
        base_url="MODEL_BASE_URL", default="https://models.example", keys=("MODEL_API_KEY",)
    )
    key = "sk-ant-api03-" + "R3al" * 20
    made = proxied_credentials([endpoint], {"MODEL_API_KEY": key})
    placeholder = made.agent_env({"MODEL_API_KEY": key}, "http://proxy")["MODEL_API_KEY"]

    async with (
        corporate_proxy(net) as corporate,
        net.server("models.example", 443, answering(), tls=authority.server("models.example")),
        net.proxy(credentials=made, tls=authority.client(), upstream=upstream()) as url,
    ):
        head = f"GET /model-base-url/v1 HTTP/1.1\r\nHost: x\r\nx-api-key: {placeholder}\r\n\r\n"
        said = await ask(url, head.encode())

    assert b" 200 " in said
    assert net.seen[0].header("x-api-key") == [key]
    (head,) = corporate.heads
    assert head.startswith("CONNECT models.example:443 ")
    assert key not in head


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 407 Who?\r\n\r\n", "the proxy of HTTPS_PROXY wants another name and password"),
        (b"HTTP/1.1 401 Who?\r\n\r\n", "the proxy of HTTPS_PROXY wants another name and password"),
        (b"HTTP/1.1 503 No\r\n\r\n", "the proxy of HTTPS_PROXY answers 503 for docs.example:80"),
        (b"", "the proxy of HTTPS_PROXY broke off"),
        (b"x" * 20_000, "the proxy of HTTPS_PROXY broke off"),
    ],
)
async def test_a_proxy_that_opens_no_tunnel_is_named(answer: bytes, told: str) -> None:
    """The agent is told in one sentence, without the password."""
    net = MadeUpNetwork()

    async with (
        corporate_proxy(net) as corporate,
        net.proxy("docs.example", upstream=upstream()) as url,
    ):
        corporate.answer = answer
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert b" 502 " in said
    assert told.encode() in said
    assert PASSWORD.encode() not in said


@pytest.mark.parametrize("address", ["socks5://proxy.corp:1080", "http://proxy.corp:x", "http://"])
async def test_an_address_that_is_none_is_told(address: str) -> None:
    """Nothing is reached past it."""
    net = MadeUpNetwork()

    async with net.proxy("docs.example", upstream=upstream({"ALL_PROXY": address})) as url:
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert b"ALL_PROXY of the daemon is no address as http://proxy:3128" in said
    assert net.asked == []


def test_the_environment_names_it() -> None:
    """By the variables that curl knows; an address without a scheme is one of plain HTTP."""
    assert UpstreamProxy.of({"PATH": "/bin", "HTTPS_PROXY": " "}) is None
    assert upstream({"https_proxy": "proxy.corp:3128"}).host == "proxy.corp"
    assert PASSWORD not in repr(upstream())
    own = upstream({"HTTPS_PROXY": "http://p", "no_proxy": "10.0.0.0/8,::1,*.lan"})
    found = [own.is_for(host) for host in ("10.1.1.1", "11.1.1.1", "a.lan", "alan", "x.example")]
    assert found == [False, True, False, True, True]
    assert not upstream({"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}).is_for("x.example")
