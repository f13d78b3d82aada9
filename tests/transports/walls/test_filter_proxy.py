"""The proxy of a run: what it lets through, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h11
import pytest
import trio

from sortie.facts import Fact
from sortie.facts.daemon import AdapterCrashed
from sortie.model.allowed_hosts import allowed_host
from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports.walls.destinations import Address
from sortie.transports.walls.filter_proxy import ProxyRules, open_filter_proxy
from sortie.transports.walls.proxied_credentials import proxied_credentials
from sortie.transports.walls.proxied_requests import RequestLimits
from tests.transports.walls.network import (
    LIMIT,
    RUN,
    MadeUpNetwork,
    SeenRequest,
    answering,
    ask,
    connection,
    say,
    until_end,
)


async def test_a_listed_host_is_asked_and_its_answer_passed_on() -> None:
    """A request in absolute form reaches its server as an ordinary one, and is told as a fact."""
    net = MadeUpNetwork()

    async with (
        net.server("docs.example", 80, answering(b"hello\n")),
        net.proxy("docs.example") as url,
    ):
        said = await ask(
            url,
            b"GET http://docs.example/a?b=c HTTP/1.1\r\nHost: evil.example\r\n"
            b"Proxy-Authorization: Basic eDp5\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n"
            b"X-End: 2\r\n\r\n",
        )

    (seen,) = net.seen
    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.endswith(b"\r\n\r\nhello\n")
    assert b"connection: close" in said.lower()
    assert (seen.method, seen.target) == ("GET", "/a?b=c")
    assert seen.headers == [("host", "docs.example"), ("x-end", "2"), ("connection", "close")]
    (fact,) = net.ended
    assert (fact.host, fact.port, fact.error) == ("docs.example", 80, None)
    assert fact.received == len(said)


async def test_a_tunnel_passes_both_directions_and_counts_them() -> None:
    """Bytes go both ways, also those that the agent sends before it has an answer."""
    net = MadeUpNetwork()

    async def echo(stream: trio.SocketStream) -> None:
        async with stream:
            while chunk := await stream.receive_some(65536):
                await stream.send_all(chunk.upper())
            await stream.send_eof()

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, echo, listeners)
        net.names["git.example"] = ["93.184.215.14"]
        net.ports["93.184.215.14", 443] = listeners[0].socket.getsockname()[1]
        async with net.proxy("git.example") as url, await connection(url) as stream:
            await stream.send_all(b"CONNECT git.example:443 HTTP/1.1\r\nHost: x\r\n\r\nearly ")
            await stream.send_all(b"late")
            await stream.send_eof()
            said = await until_end(stream)
        nursery.cancel_scope.cancel()

    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b"EARLY LATE"
    (fact,) = net.ended
    assert (fact.host, fact.port, fact.received) == ("git.example", 443, len(said))


async def test_what_is_not_listed_is_neither_looked_up_nor_reached() -> None:
    """The answer is one sentence that names the setting; no name server hears of the name."""
    net = MadeUpNetwork()
    net.names["evil.example"] = ["93.184.215.15"]

    async with net.proxy("docs.example") as url:
        plain = await ask(url, b"GET http://evil.example/ HTTP/1.1\r\nHost: docs.example\r\n\r\n")
        tunnel = await ask(url, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: docs.example\r\n\r\n")

    assert plain.startswith(b"HTTP/1.1 403 ")
    assert plain.endswith(
        b"\r\n\r\nevil.example:80 is not reachable from this run:"
        b" sandbox.network does not list evil.example\n"
    )
    assert tunnel.startswith(
        b"HTTP/1.1 403 evil.example:443 is not reachable from this run:"
        b" sandbox.network does not list evil.example\r\n"
    )
    assert (net.asked, net.connected) == ([], [])
    assert [(fact.host, fact.port) for fact in net.refused] == [
        ("evil.example", 80),
        ("evil.example", 443),
    ]


async def test_a_second_request_on_a_connection_is_not_passed_on() -> None:
    """A kept-alive connection is closed after its first answer, so that each request is judged."""
    net = MadeUpNetwork()

    async with net.server("docs.example", 80, answering()), net.proxy("docs.example") as url:
        said = await ask(
            url,
            b"GET http://docs.example/1 HTTP/1.1\r\nHost: docs.example\r\n\r\n"
            b"GET http://evil.example/2 HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        )

    assert said.count(b"HTTP/1.1 ") == 1
    assert [seen.target for seen in net.seen] == ["/1"]


async def test_events_pass_one_by_one() -> None:
    """A stream of events is not kept back until it is complete."""
    net = MadeUpNetwork()
    read = trio.Event()

    async def events(state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        kind = [("Content-Type", "text/event-stream")]
        await say(state, stream, h11.Response(status_code=200, headers=kind))
        await say(state, stream, h11.Data(data=b"data: first\n\n"))
        await read.wait()
        await say(state, stream, h11.Data(data=b"data: second\n\n"))
        await say(state, stream, h11.EndOfMessage())

    async with (
        net.server("model.example", 80, events),
        net.proxy("model.example") as url,
        await connection(url) as stream,
    ):
        await stream.send_all(b"GET http://model.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
        said = b""
        with trio.fail_after(LIMIT):
            while b"first" not in said:
                said += await stream.receive_some(65536)
        assert b"second" not in said
        read.set()
        said += await until_end(stream)

    assert b"data: second" in said
    assert said.endswith(b"\r\n0\r\n\r\n")


async def test_a_body_of_unknown_length_is_passed_on_whole() -> None:
    """A chunked body arrives as it was sent, and Expect is answered by the proxy."""
    net = MadeUpNetwork()

    async with (
        net.server("docs.example", 80, answering()),
        net.proxy("docs.example") as url,
        await connection(url) as stream,
    ):
        await stream.send_all(
            b"POST http://docs.example/ HTTP/1.1\r\nHost: docs.example\r\n"
            b"Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
        )
        with trio.fail_after(LIMIT):
            asked = await stream.receive_some(65536)
        await stream.send_all(b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
        said = await until_end(stream)

    assert asked.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in said
    assert net.seen[0].body == b"abcdefg"
    assert net.seen[0].header("transfer-encoding") == ["chunked"]


async def test_a_server_that_cannot_be_reached_is_told_and_counted_as_allowed() -> None:
    """The agent hears why; the fact is one of a connection that failed."""
    net = MadeUpNetwork(names={"down.example": ["93.184.215.14"]})

    async with net.proxy("down.example", "gone.example") as url:
        down = await ask(url, b"CONNECT down.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        gone = await ask(url, b"GET http://gone.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert down.startswith(b"HTTP/1.1 502 down.example:443 cannot be reached: Connection refused")
    assert gone.startswith(b"HTTP/1.1 502 the name gone.example is not known")
    assert [fact.error for fact in net.ended] == [
        "down.example:443 cannot be reached: Connection refused",
        "the name gone.example is not known",
    ]


async def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    """The agent sees that the end of a body is missing."""
    net = MadeUpNetwork()

    async def half(state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        await say(state, stream, h11.Response(status_code=200, headers=[]))
        await say(state, stream, h11.Data(data=b"half"))

    async with net.server("docs.example", 80, half), net.proxy("docs.example") as url:
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.endswith(b"half\r\n")
    assert [fact.error for fact in net.ended] == ["it broke off"]


RAW: dict[str, tuple[bytes, bytes, bytes]] = {
    "an early hint": (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n",
        b"\r\n\r\nok",
    ),
    "length and coding": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ),
    "more than its length": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"\r\n\r\nok",
    ),
    "nothing": (b"", b"HTTP/1.1 502 the server has closed", b"without an answer\n"),
    "no HTTP": (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 502 the server's answer is not", b"HTTP\n"),
    "a switch that nobody asked for": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        b"HTTP/1.1 502 the server's answer is not",
        b"HTTP\n",
    ),
    "a head without an end": (
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000,
        b"HTTP/1.1 502 the server's answer is not",
        b"HTTP\n",
    ),
}
"""What a server sends, and how what the agent gets begins and ends."""


@pytest.mark.parametrize("name", RAW)
async def test_answers_of_strange_servers(name: str) -> None:
    """The agent gets one answer that it can understand in one way only."""
    raw, begins, ends = RAW[name]
    net = MadeUpNetwork()

    async def answer(_state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        await stream.send_all(raw)

    async with net.server("docs.example", 80, answer), net.proxy("docs.example") as url:
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.startswith(begins)
    assert said.endswith(ends)
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"content-length: 9" not in said.lower()


async def test_a_head_that_does_not_come_ends_its_connection() -> None:
    """Who begins a request and does not finish it is told so."""
    net = MadeUpNetwork()

    async with net.proxy("docs.example", limits=RequestLimits(head=0.05)) as url:
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n")

    assert said.startswith(b"HTTP/1.1 408 no whole request came in 0.05 seconds")


async def test_a_tunnel_on_which_nothing_moves_is_closed() -> None:
    """A tunnel is not held open for ever by two ends that say nothing."""
    net = MadeUpNetwork()

    async with (
        net.server("docs.example", 443, answering()),
        net.proxy("docs.example", limits=RequestLimits(idle=0.05)) as url,
    ):
        said = await ask(url, b"CONNECT docs.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said == b"HTTP/1.1 200 Connected\r\n\r\n"
    assert [fact.host for fact in net.ended] == ["docs.example"]


async def test_a_server_that_says_nothing_is_a_timeout() -> None:
    """A request that is not answered is answered by the proxy."""
    net = MadeUpNetwork()

    async def silent(state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        await trio.sleep_forever()

    async with (
        net.server("docs.example", 80, silent),
        net.proxy("docs.example", limits=RequestLimits(idle=0.05)) as url,
    ):
        said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 504 the server says nothing any more")


async def test_an_agent_that_goes_away_ends_its_request() -> None:
    """A server that is asked for nobody any more sees its connection end."""
    net = MadeUpNetwork()
    left = trio.Event()

    async def waiting(state: h11.Connection, stream: trio.abc.Stream, _: SeenRequest) -> None:
        await stream.receive_some(1)
        left.set()

    async with net.server("docs.example", 80, waiting), net.proxy("docs.example") as url:
        async with await connection(url) as stream:
            await stream.send_all(b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
            with trio.fail_after(LIMIT):
                while not net.seen:
                    await trio.sleep(0.01)
        with trio.fail_after(LIMIT):
            await left.wait()


async def test_too_many_connections_are_refused() -> None:
    """A run has so many at once; one more is answered, and works when another has ended."""
    net = MadeUpNetwork()
    open_ = [b"CONNECT docs.example:80 HTTP/1.1\r\nHost: x\r\n\r\n"]

    async with (
        net.server("docs.example", 80, answering()),
        net.proxy("docs.example", max_connections=1) as url,
    ):
        async with await connection(url) as held:
            await held.send_all(open_[0])
            with trio.fail_after(LIMIT):
                await held.receive_some(100)
            refused = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
        with trio.fail_after(LIMIT):
            while not (
                said := await ask(url, b"GET http://docs.example/ HTTP/1.0\r\n\r\n")
            ).startswith(b"HTTP/1.1 200"):
                await trio.sleep(0.01)

    assert refused.startswith(b"HTTP/1.1 503 this run has 1 connections already")
    assert said.endswith(b"hello\n")


async def test_an_error_of_the_run_passes_as_it_is() -> None:
    """What a run raises is not hidden in a group, and all is told before."""
    net = MadeUpNetwork()

    with pytest.raises(LookupError, match="the run's"):
        async with net.proxy("docs.example") as url:
            await ask(url, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            raise LookupError("the run's")

    assert len(net.refused) == 1


async def test_the_end_of_a_run_ends_its_connections() -> None:
    """An open tunnel is closed and counted; the port is free again."""
    net = MadeUpNetwork()

    async with net.server("docs.example", 443, answering()):
        async with net.proxy("docs.example") as url:
            stream = await connection(url)
            await stream.send_all(b"CONNECT docs.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            with trio.fail_after(LIMIT):
                await stream.receive_some(100)
        async with stream:
            rest = await until_end(stream)

    assert rest == b""
    assert [(fact.host, fact.error) for fact in net.ended] == [("docs.example", None)]
    with pytest.raises(OSError):
        await connection(url)


async def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    """A socket of the file system is the way out where there is no network at all."""
    net = MadeUpNetwork()
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(str(tmp_path / "proxy"))
    sock.listen(8)

    async with (
        open_filter_proxy(
            [trio.SocketListener(sock)], ProxyRules(allowed=()), net.facts.append, run_id=RUN
        ),
        await trio.open_unix_socket(tmp_path / "proxy") as stream,
    ):
        await stream.send_all(b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
        said = await until_end(stream)

    assert said.startswith(b"HTTP/1.1 403 ")


async def test_names_are_looked_up_as_the_system_does() -> None:
    """Without anything made up the proxy asks the system, and trusts whom the system trusts."""
    net = MadeUpNetwork()
    facts: list[Fact] = []
    key = {"MODEL_API_KEY": "k" * 20}

    async with net.server("localhost", 80, answering()) as here:
        endpoint = ModelEndpoint(
            base_url="MODEL_URL", default=f"https://localhost:{here}", keys=("MODEL_API_KEY",)
        )
        rules = ProxyRules(allowed=(allowed_host(f"localhost:{here}"), allowed_host("x.invalid")))
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        credentials = proxied_credentials([endpoint], key)
        async with open_filter_proxy(
            listeners, rules, facts.append, run_id=RUN, credentials=credentials
        ):
            host = f"http://localhost:{here}/".encode()
            said = await ask(url, b"GET " + host + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            unknown = await ask(url, b"CONNECT x.invalid:443 HTTP/1.1\r\nHost: x\r\n\r\n")
            no_tls = await ask(url, b"GET /model-url/ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert said.startswith(b"HTTP/1.1 200 ")
    assert unknown.startswith(b"HTTP/1.1 502 the name x.invalid is not known")
    assert no_tls.startswith(b"HTTP/1.1 502 localhost cannot be trusted over TLS: ")


async def test_a_bug_ends_one_connection_and_is_told_once() -> None:
    """What nobody has thought of is an event of the log, and the run goes on."""
    net = MadeUpNetwork()

    async def broken(host: str) -> Sequence[Address]:
        raise ZeroDivisionError(host)

    net.lookup = broken  # type: ignore[method-assign]
    async with net.proxy("docs.example") as url:
        for _ in range(3):
            said = await ask(url, b"GET http://docs.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
            assert said == b""
        refused = await ask(url, b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n")

    crashed = [fact for fact in net.facts if isinstance(fact, AdapterCrashed)]
    assert refused.startswith(b"HTTP/1.1 403 ")
    assert [fact.where for fact in crashed] == ["proxy"]
    assert "ZeroDivisionError" in crashed[0].traceback


async def test_hundreds_of_connections_at_once_are_bounded() -> None:
    """A run that opens as many as it can is served as many as it may have, and facts are few."""
    net = MadeUpNetwork()
    said: list[bytes] = []

    async def one(url: str) -> None:
        try:
            said.append(await ask(url, b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n"))
        except OSError:
            said.append(b"")

    async with (
        net.proxy("docs.example", max_connections=8) as url,
        trio.open_nursery() as nursery,
    ):
        for _ in range(300):
            nursery.start_soon(one, url)

    statuses = {text[9:12] for text in said}
    assert len(said) == 300
    assert statuses <= {b"403", b"503", b""}
    assert b"403" in statuses
    assert sum(fact.connections for fact in net.refused) <= 300
    assert len(net.refused) < 30
