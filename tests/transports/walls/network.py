"""A network that a test has made up: names, addresses, and servers on loopback behind them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import h11
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sortie.facts import Fact
from sortie.facts.network import ConnectionEnded, ConnectionRefused
from sortie.model import RunId
from sortie.model.allowed_hosts import allowed_host
from sortie.transports.walls.destinations import Address, connect_to
from sortie.transports.walls.filter_proxy import ProxyRules, open_filter_proxy
from sortie.transports.walls.proxied_credentials import ProxiedCredentials
from sortie.transports.walls.proxied_requests import RequestLimits
from sortie.transports.walls.upstream_proxy import UpstreamProxy

RUN = RunId("11111111-2222-3333-4444-555555555555")
LIMIT = 60.0  # seconds that a machine at a load of 20 keeps


@dataclass
class SeenRequest:
    """A request as a server got it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for found, value in self.headers if found == name]


Answer = Callable[[h11.Connection, trio.abc.Stream, SeenRequest], Awaitable[None]]


@dataclass
class MadeUpNetwork:
    """Rule: whatever is connected to is a server of the test, on loopback."""

    names: dict[str, Sequence[str]] = field(default_factory=dict)
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    seen: list[SeenRequest] = field(default_factory=list)

    async def lookup(self, host: str) -> Sequence[Address]:
        await trio.lowlevel.checkpoint()
        self.asked.append(host)
        return [ip_address(text) for text in self.names.get(host, ())]

    async def connect(self, address: Address, port: int) -> trio.SocketStream:
        self.connected.append((str(address), port))
        here = self.ports.get((str(address), port))
        if here is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return await connect_to(ip_address("127.0.0.1"), here)

    @property
    def ended(self) -> list[ConnectionEnded]:
        return [fact for fact in self.facts if isinstance(fact, ConnectionEnded)]

    @property
    def refused(self) -> list[ConnectionRefused]:
        return [fact for fact in self.facts if isinstance(fact, ConnectionRefused)]

    @asynccontextmanager
    async def server(
        self,
        name: str,
        port: int,
        answer: Answer,
        *,
        address: str = "93.184.215.14",
        tls: ssl.SSLContext | None = None,
    ) -> AsyncIterator[int]:
        """Serve a name at a port of the network; give the real port."""

        async def serve(stream: trio.SocketStream) -> None:
            way: trio.abc.Stream = stream
            if tls is not None:
                way = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
            async with way:
                try:
                    await self._serve(way, answer)
                except (trio.BrokenResourceError, h11.ProtocolError):
                    pass

        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            here = listeners[0].socket.getsockname()[1]
            self.names.setdefault(name, [address])
            self.ports[self.names[name][0], port] = here
            nursery.start_soon(trio.serve_listeners, serve, listeners)
            yield here
            nursery.cancel_scope.cancel()

    async def _serve(self, stream: trio.abc.Stream, answer: Answer) -> None:
        state = h11.Connection(h11.SERVER)
        request, body = None, b""
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                state.receive_data(bytes(await stream.receive_some(65536)))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return
        assert request is not None
        seen = SeenRequest(
            method=request.method.decode(),
            target=request.target.decode(),
            headers=[(name.decode(), value.decode("latin-1")) for name, value in request.headers],
            body=body,
        )
        self.seen.append(seen)
        await answer(state, stream, seen)

    @asynccontextmanager
    async def proxy(
        self,
        *allowed: str,
        credentials: ProxiedCredentials | None = None,
        tls: ssl.SSLContext | None = None,
        limits: RequestLimits | None = None,
        max_connections: int = 64,
        upstream: UpstreamProxy | None = None,
    ) -> AsyncIterator[str]:
        """Have a proxy in front of the network; give its URL."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        rules = ProxyRules(
            allowed=tuple(map(allowed_host, allowed)),
            limits=limits or RequestLimits(),
            max_connections=max_connections,
        )
        async with open_filter_proxy(
            listeners,
            rules,
            self.facts.append,
            run_id=RUN,
            credentials=credentials,
            lookup=self.lookup,
            connect=self.connect,
            tls=tls,
            upstream=upstream,
        ):
            yield f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"


def answering(
    body: bytes = b"hello\n",
    *,
    status: int = 200,
    headers: Sequence[tuple[str, str]] = (),
) -> Answer:
    """Return what answers every request alike."""

    async def answer(state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        shown = [("Content-Length", str(len(body))), *headers]
        await say(state, stream, h11.Response(status_code=status, headers=shown))
        await say(state, stream, h11.Data(data=body))
        await say(state, stream, h11.EndOfMessage())

    return answer


async def say(state: h11.Connection, stream: trio.abc.Stream, event: h11.Event) -> None:
    """Send an event of h11."""
    if data := state.send(event):
        await stream.send_all(data)


async def connection(url: str) -> trio.SocketStream:
    """Open a connection to a proxy."""
    host, _, port = url.removeprefix("http://").partition(":")
    return await trio.open_tcp_stream(host, int(port))


async def until_end(stream: trio.abc.ReceiveStream) -> bytes:
    """Return all that comes until the other end closes."""
    said = b""
    with trio.fail_after(LIMIT):
        try:
            while chunk := await stream.receive_some(65536):
                said += chunk
        except trio.BrokenResourceError:
            pass
    return said


async def ask(url: str, request: bytes) -> bytes:
    """Send bytes to a proxy, and return all that it says."""
    async with await connection(url) as stream:
        try:
            await stream.send_all(request)
        except trio.BrokenResourceError:
            pass  # it has answered before it had read all
        return await until_end(stream)


class TestAuthority:
    """An authority that signs certificates of a test's servers."""

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Test authority")])
        self._certificate = self._sign(self._name, self._key, None)
        self.path = self._write("authority.pem", self._certificate)

    def server(self, *names: str) -> ssl.SSLContext:
        """Return what a server of these names speaks TLS with."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = self._write(f"{names[0]}.pem", self._sign(name, key, names))
        secret = self._directory / f"{names[0]}.key"
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, secret)
        return context

    def client(self) -> ssl.SSLContext:
        """Return what trusts these servers, and no others."""
        return ssl.create_default_context(cafile=str(self.path))

    def _write(self, name: str, certificate: x509.Certificate) -> Path:
        path = self._directory / name
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _sign(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, names: tuple[str, ...] | None
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=names is None, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names is None:
            made = made.add_extension(
                x509.KeyUsage(
                    digital_signature=True,
                    key_cert_sign=True,
                    crl_sign=True,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
        else:
            alternatives = x509.SubjectAlternativeName([x509.DNSName(one) for one in names])
            made = made.add_extension(alternatives, critical=False)
        return made.sign(self._key, hashes.SHA256())
