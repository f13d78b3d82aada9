"""What a request comes to, whatever the network and the other end make of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.http import bodies
from sortie.http import client as client_module
from sortie.http.budget import Use
from sortie.http.client import open_client, segment
from sortie.http.credentials import basic, bearer, header
from sortie.http.requests import HttpRequest
from sortie.model import LostAnswer, TrackerError, TrackerErrorKind
from tests.http.conftest import PROVIDER, TOKEN, Opened, Things
from tests.trackers.server.certificates import make_certificate
from tests.trackers.server.exchange import Reply
from tests.trackers.server.faults import (
    Drip,
    Fault,
    Hang,
    Html,
    Large,
    Refuse,
    Reset,
    Truncate,
)
from tests.trackers.server.serving import TestServer, serving

READ = HttpRequest(path="/thing", what="cannot read the thing")
CHANGE = HttpRequest(path="/thing", what="cannot change it", method="POST", body=[1], use=Use.WRITE)


async def test_an_answer_is_whole_and_parsed(opened: Opened, server: TestServer) -> None:
    """It is asked for with the credential, a name of ours, and nothing else that tells of us."""
    async with opened() as client:
        answer = await client.ask(READ)

    assert (answer.status, answer.json()) == (200, {"id": 7})
    (asked,) = server.asked
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["user-agent"].startswith("sortie/")
    assert "cookie" not in asked.headers


async def test_a_part_of_a_path_stays_one_part(opened: Opened, server: TestServer) -> None:
    """Slashes, question marks and dots arrive as they are, and lead nowhere else."""
    odd = ["a/b", "what?", "..", "100 %", "größe#1"]
    async with opened() as client:
        for name in odd:
            with pytest.raises(TrackerError):
                await client.ask(HttpRequest(path=f"/label/{segment(name)}", what="x"))

    assert [r.segments[2:] for r in server.asked] == [(name,) for name in odd]


FAULTS: Mapping[str, tuple[Fault, TrackerErrorKind]] = {
    "truncated JSON": (Truncate(whole=True), TrackerErrorKind.UNAVAILABLE),
    "a body that ends early": (Truncate(), TrackerErrorKind.UNAVAILABLE),
    "HTML": (Html(), TrackerErrorKind.UNAVAILABLE),
    "HTML of a proxy": (Html(502), TrackerErrorKind.CLOSED),
    "a reset": (Reset(performed=True), TrackerErrorKind.UNAVAILABLE),
    "too much": (Large(50_000), TrackerErrorKind.UNAVAILABLE),
    "401": (Refuse(status=401), TrackerErrorKind.CLOSED),
    "403": (Refuse(status=403), TrackerErrorKind.PERMISSION),
    "404": (Refuse(status=404), TrackerErrorKind.NOT_FOUND),
    "409": (Refuse(status=409), TrackerErrorKind.CONFLICT),
    "422": (Refuse(status=422), TrackerErrorKind.INVALID),
    "429": (Refuse(status=429), TrackerErrorKind.UNAVAILABLE),
    "500": (Refuse(status=500), TrackerErrorKind.UNAVAILABLE),
    "503": (Refuse(status=503), TrackerErrorKind.CLOSED),
    "a redirect": (
        Refuse(status=302, headers={"Location": "/api/other"}),
        TrackerErrorKind.CLOSED,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_each_fault_is_an_error_of_the_port(
    name: str, opened: Opened, server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says what was attempted, and the next request works."""
    monkeypatch.setattr(bodies, "LARGEST_BODY", 10_000)
    fault, kind = FAULTS[name]
    server.inject(fault)

    async with opened() as client:
        with pytest.raises(TrackerError) as failed:
            await client.ask(READ)
        answer = await client.ask(READ)

    assert failed.value.kind is kind
    assert not isinstance(failed.value, LostAnswer)
    assert str(failed.value).startswith("cannot read the thing (Example at 127.0.0.1): ")
    assert answer.json() == {"id": 7}


LOST: Mapping[str, tuple[Fault, bool]] = {
    "truncated JSON": (Truncate(whole=True), True),
    "a body that ends early": (Truncate(), True),
    "HTML": (Html(), True),
    "a reset": (Reset(performed=True), True),
    "500": (Refuse(status=500), True),
    "502": (Refuse(status=502), True),
    "409": (Refuse(status=409), False),
    "422": (Refuse(status=422), False),
    "429": (Refuse(status=429), False),
    "503": (Refuse(status=503), False),
}


@pytest.mark.parametrize("name", LOST)
async def test_a_change_that_may_have_been_made_is_a_lost_answer(
    name: str, opened: Opened, server: TestServer
) -> None:
    """What was refused was not made; of the rest nobody knows."""
    fault, is_lost = LOST[name]
    server.inject(fault)

    async with opened() as client:
        with pytest.raises(TrackerError) as failed:
            await client.ask(CHANGE)

    assert isinstance(failed.value, LostAnswer) is is_lost
    assert server.count("POST") == 1


async def test_a_slow_drip_and_silence_end_in_time(
    opened: Opened, server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then does not keep a request alive."""
    monkeypatch.setattr(client_module, "LONGEST_REQUEST", 0.3)
    server.inject(Drip(0.1))
    server.inject(Hang())

    async with opened() as client:
        for _ in range(2):
            began = trio.current_time()
            with pytest.raises(TrackerError) as failed:
                await client.ask(READ)
            assert trio.current_time() - began < 20
            assert failed.value.kind is TrackerErrorKind.UNAVAILABLE
            assert "0.3 s" in str(failed.value)


async def test_nobody_listening_is_a_closed_tracker(opened: Opened, server: TestServer) -> None:
    """Nothing was sent, so a change was not made either, and all works once it is back."""
    async with opened() as client:
        await client.ask(READ)
        server.stop()
        for request in (READ, CHANGE):
            with pytest.raises(TrackerError) as failed:
                await client.ask(request)
            assert failed.value.kind is TrackerErrorKind.CLOSED
            assert not isinstance(failed.value, LostAnswer)
        server.start()
        assert (await client.ask(READ)).json() == {"id": 7}


async def test_a_redirect_is_followed_once_on_the_same_server(
    opened: Opened, server: TestServer, things: Things
) -> None:
    """Where the caller wants that, and for reads only; another server gets nothing."""
    follow = HttpRequest(path="/old", what="cannot read", follow=True)
    away = f"http://localhost:{server.url.rpartition(':')[2]}/api/thing"
    things.replies["/api/old"] = Reply(status=301, headers={"Location": "/api/thing"})
    things.replies["/api/away"] = Reply(status=302, headers={"Location": away})
    things.replies["/api/loop"] = Reply(status=302, headers={"Location": "/api/loop"})

    async with opened(credential=header("PRIVATE-TOKEN", TOKEN)) as client:
        found = await client.ask(follow)
        before = len(server.asked)
        with pytest.raises(TrackerError) as refused:
            await client.ask(HttpRequest(path="/away", what="cannot read", follow=True))
        with pytest.raises(TrackerError):
            await client.ask(HttpRequest(path="/loop", what="cannot read", follow=True))
        server.inject(Refuse(status=307, headers={"Location": "/api/thing"}), method="POST")
        with pytest.raises(TrackerError):
            await client.ask(CHANGE)

    assert found.json() == {"id": 7}
    assert refused.value.kind is TrackerErrorKind.CLOSED
    assert "localhost" in str(refused.value)
    assert len(server.asked) == before + 1 + 2 + 1
    assert things.posted == []


async def test_what_has_not_changed_is_not_sent_again(
    opened: Opened, server: TestServer, things: Things
) -> None:
    """The server is asked every time, and its word that nothing has changed is believed."""
    question = HttpRequest(path="/thing", what="cannot read", remember=True)
    async with opened() as client:
        first = await client.ask(question)
        second = await client.ask(question)
        things.replies["/api/thing"] = Reply(body={"id": 8}, headers={"ETag": '"two"'})
        third = await client.ask(question)

    assert [a.json() for a in (first, second, third)] == [{"id": 7}, {"id": 7}, {"id": 8}]
    assert [a.remembered for a in (first, second, third)] == [False, True, False]
    assert second.json() is first.json()
    assert len(server.asked) == 3


class Rotating:
    """A credential that is another one after each renewal."""

    def __init__(self) -> None:
        self.number = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer secret-{self.number}"}

    async def renew(self) -> bool:
        self.number += 1
        return True

    @property
    def secrets(self) -> list[str]:
        return [f"secret-{self.number}"]

    @property
    def identity(self) -> object:
        """It is alone."""
        return self


async def test_a_credential_is_renewed_once(opened: Opened, server: TestServer) -> None:
    """A 401 is tried again with another token, and what is remembered holds for it as well."""
    question = HttpRequest(path="/thing", what="cannot read", remember=True)
    async with opened(credential=Rotating()) as client:
        await client.ask(question)
        server.inject(Refuse(status=401))
        again = await client.ask(question)
        server.inject(Refuse(status=401), times=2)
        with pytest.raises(TrackerError) as failed:
            await client.ask(question)

    assert again.remembered
    assert failed.value.kind is TrackerErrorKind.CLOSED
    assert [r.headers["authorization"][-1] for r in server.asked] == ["0", "0", "1", "1", "2"]


async def test_no_text_holds_a_secret(
    opened: Opened, server: TestServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither errors, with what they were raised from, nor reprs, nor the library's own log."""
    caplog.set_level(logging.DEBUG)
    leaks: list[Any] = []
    for credential in (bearer(TOKEN), header("PRIVATE-TOKEN", TOKEN), basic("me", TOKEN)):
        server.inject(Refuse(status=422, body={"message": f"bad {TOKEN}", "errors": [TOKEN]}))
        server.inject(Refuse(status=200, body=f"<{TOKEN}>".encode()))
        server.inject(Refuse(status=302, headers={"Location": f"/?token={TOKEN}"}))
        async with opened(credential=credential) as client:
            leaks += [repr(client), repr(credential), repr(vars(client))]
            for _ in range(3):
                with pytest.raises(TrackerError) as failed:
                    await client.ask(READ)
                found: BaseException | None = failed.value
                while found is not None:
                    leaks += [str(found), repr(found)]
                    found = found.__cause__
            await client.ask(READ)

    assert not [text for text in leaks if TOKEN in text]
    assert TOKEN not in caplog.text
    assert "httpx2" not in {record.name for record in caplog.records}


async def test_progress_is_told_with_each_answer(server: TestServer) -> None:
    """So that a long list is not given up as long as it gets on."""
    steps: list[int] = []
    async with open_client(
        PROVIDER, f"{server.url}/api", bearer(TOKEN), lambda: steps.append(1)
    ) as client:
        await client.ask(READ)
        await client.ask(READ)

    assert len(steps) == 2


async def test_a_server_over_tls_is_known_by_its_certificate(
    things: Things, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody vouches for is not asked anything."""
    certificate = make_certificate(tmp_path)
    with serving(things, certificate=certificate) as server:
        endpoint = f"{server.url}/api"
        async with open_client(PROVIDER, endpoint, bearer(TOKEN)) as client:
            with pytest.raises(TrackerError) as unknown:
                await client.ask(READ)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        async with open_client(PROVIDER, endpoint, bearer(TOKEN)) as client:
            known = await client.ask(READ)

    assert unknown.value.kind is TrackerErrorKind.CLOSED
    assert "certificate" in str(unknown.value).lower()
    assert known.json() == {"id": 7}
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "endpoint", ["example.org", "ftp://example.org", "https://me:pw-secret@example.org", "https://"]
)
async def test_an_endpoint_that_is_no_address_is_refused(endpoint: str) -> None:
    """Before anything is asked, and without what stands in it."""
    with pytest.raises(TrackerError) as refused:
        async with open_client(PROVIDER, endpoint, bearer(TOKEN)):
            pass

    assert refused.value.kind is TrackerErrorKind.INVALID
    assert str(refused.value).startswith("tracker.endpoint: ")
    assert "pw-secret" not in str(refused.value)


@pytest.mark.parametrize("blank", ["word ", "x", " "])
async def test_no_part_of_a_secret_is_left_where_a_text_is_cut(
    opened: Opened, things: Things, blank: str
) -> None:
    """Whatever the place of the cut in it: in what a refusal says, in a body that is no JSON, in a
    redirect, and in what an answer that looks like a success says."""
    texts: list[str] = []
    async with opened() as client:
        for limit in (80, 300, 500, 1200):
            for offset in range(len(TOKEN) + 1):
                body = (blank * limit)[: limit - offset] + f"{TOKEN} and more {'y' * 600}"
                where = {"Location": f"https://x.example/?{body.replace(' ', '+')}"}
                for reply in (
                    Reply(status=500, body={"message": body}),
                    Reply(status=500, body=body.encode()),
                    Reply(status=200, body=body.encode()),
                    Reply(status=302, body=b"", headers=where),
                ):
                    things.replies["/api/thing"] = reply
                    with pytest.raises(TrackerError) as refused:
                        await client.ask(READ)
                    texts.append(str(refused.value))
                texts.append(str(client.error(TrackerErrorKind.INVALID, READ, body)))

    parts = [TOKEN[at : at + 6] for at in range(len(TOKEN) - 5)]
    assert not [text for text in texts if any(part in text for part in parts)]
    assert all(len(text) < 700 for text in texts)
