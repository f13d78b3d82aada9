"""What commands send to a daemon, to whom, and what they make of its answers."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest
from msgspec.structs import replace

from sortie.cli import client
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import TOKEN, Asked, FakeDaemon, announce, serving
from tests.cli.world import Ran

BEARER = f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("refresh", "/api/v1/refresh"),
        ("pause", "/api/v1/pause"),
        ("resume", "/api/v1/resume"),
        ("stop DEMO-1", "/api/v1/issues/DEMO-1/stop"),
        ("retry DEMO-1", "/api/v1/issues/DEMO-1/retry"),
        ("stop group/p#7%", "/api/v1/issues/group%2Fp%237%25/stop"),
        ("retry ü🧵", "/api/v1/issues/%C3%BC%F0%9F%A7%B5/retry"),
        ("stop ../../refresh", "/api/v1/issues/..%2F..%2Frefresh/stop"),
        ("answer DEMO-1 2", "/api/v1/issues/DEMO-1/answer"),
        ("retry \udcff", "/api/v1/issues/%FF/retry"),
    ],
)
@pytest.mark.parametrize("status", [200, 202])
def test_a_command_is_one_request(
    cli: Cli, daemon: FakeDaemon, command: str, path: str, status: int
) -> None:
    """Each command is one POST with the token of the file, and prints what the daemon says."""
    daemon.answers[f"POST {path}"] = (status, {"message": "it is \x1b[2J done"})

    text = cli(*command.split(" "))
    data = cli(*command.split(" "), "--format", "json")

    assert text == Ran(code=0, out="it is \\x1b[2J done\n", err="")
    assert json.loads(data.out) == {"message": "it is \x1b[2J done"}
    assert daemon.asked == [Asked(method="POST", path=path, authorization=BEARER)] * 2


@pytest.mark.parametrize("name", ["", "  "])
def test_an_issue_has_a_name(cli: Cli, daemon: FakeDaemon, name: str) -> None:
    """An empty identifier is wrong usage and is not sent."""
    assert cli("stop", name).code == 2
    assert daemon.asked == []


@pytest.mark.parametrize(
    ("status", "said", "told"),
    [
        (404, "there is no X", "sortie: there is no X\n"),
        (409, "X is running", "sortie: X is running\n"),
        (503, "it is not on record yet", "sortie: it is not on record yet\n"),
        (401, "needs a token", "takes this command for a stranger's (401: needs a token)"),
        (403, "Host", "takes this command for a stranger's (403: Host)"),
        (500, "an internal error", "the daemon answered 500: an internal error; its log may say"),
        (302, "moved", "the daemon answered 302: moved"),
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_a_refusal_is_one_line_and_1(
    cli: Cli, daemon: FakeDaemon, status: int, said: str, told: str, output: str
) -> None:
    """Only what is done exits 0; a refusal is told on stderr, and stdout stays empty."""
    error = {"error": {"code": "x", "message": said}}
    daemon.answers["POST /api/v1/issues/X/stop"] = (status, error)

    ran = cli("stop", "X", "--format", output)

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert told in ran.err
    assert TOKEN not in ran.err


def test_no_redirect_is_followed(cli: Cli, daemon: FakeDaemon) -> None:
    """An answer that points elsewhere does not carry the token there."""
    with serving() as elsewhere:
        daemon.headers["Location"] = f"{elsewhere.url}api/v1/pause"
        daemon.answers["POST /api/v1/pause"] = (307, {})
        ran = cli("pause")

    assert ran.code == 1
    assert (len(daemon.asked), elsewhere.asked) == (1, [])


def test_no_proxy_is_used(cli: Cli, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment learn nothing of the daemon or its token."""
    daemon.answers["POST /api/v1/pause"] = (200, {"message": "ok"})
    with serving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        ran = cli("pause")

    assert ran.code == 0
    assert (len(daemon.asked), proxy.asked) == (1, [])


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1:1/", "http://127.0.0.1/", "ftp://x:1/", "http://[::1:1/", "", "x"]
)
def test_an_odd_address_is_refused(cli: Cli, here: Path, daemon: FakeDaemon, url: str) -> None:
    """What is no address of a daemon is not asked."""
    announce(here, replace(daemon.endpoint(), url=url))

    ran = cli("pause")

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "as its address, which is none; restart it" in ran.err


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"[" * 100_000, b"\xff"])
def test_who_is_not_sortie_is_told(cli: Cli, daemon: FakeDaemon, body: bytes) -> None:
    """An answer that is no JSON object is one line."""
    daemon.answers["POST /api/v1/pause"] = (200, body)

    ran = cli("pause")

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "is not Sortie: 200, and no JSON" in ran.err


@pytest.mark.parametrize("dribble", [False, True])
def test_a_stuck_daemon_is_not_waited_for(
    cli: Cli,
    here: Path,
    daemon: FakeDaemon,
    monkeypatch: pytest.MonkeyPatch,
    dribble: bool,
) -> None:
    """The limit is on the whole answer, also where bytes of it go on coming."""
    monkeypatch.setattr(client, "TIMEOUT", 0.5)
    done = False

    def send(sock: socket.socket) -> None:
        peer, _ = sock.accept()
        with closing(peer):
            peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n" if dribble else b"")
            while not done:
                try:
                    peer.sendall(b" " if dribble else b"")
                except OSError:
                    return
                pause.wait(0.05)

    pause = Event()
    with socket.create_server(("127.0.0.1", 0)) as sock:
        announce(here, replace(daemon.endpoint(), url=f"http://127.0.0.1:{sock.getsockname()[1]}/"))
        thread = Thread(target=send, args=(sock,))
        thread.start()
        ran = cli("pause")
        done = True
        thread.join()

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "has not answered within 0.5 s" in ran.err


def test_a_connection_that_breaks_is_told(cli: Cli, here: Path, daemon: FakeDaemon) -> None:
    """A daemon that ends while it is asked is one line."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        announce(here, replace(daemon.endpoint(), url=f"http://127.0.0.1:{sock.getsockname()[1]}/"))
        thread = Thread(target=lambda: sock.accept()[0].close())
        thread.start()
        ran = cli("pause")
        thread.join()

    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "broke off at http://127.0.0.1:" in ran.err
