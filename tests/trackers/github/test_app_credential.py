"""A GitHub App as a credential."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from trio.testing import MockClock

from sortie.model import TrackerError
from tests.trackers.github.opened import GitHub, github_opened
from tests.trackers.server.faults import Refuse

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption(),
).decode()


@asynccontextmanager
async def app(tmp_path: Path, key: str = PEM, **block: Any) -> AsyncIterator[GitHub]:
    """Open a tracker that signs in as an App."""
    async with github_opened(tmp_path, {"app_id": 5, **block}, api_key=key) as hub:
        hub.service.public_key = KEY.public_key()
        hub.service.tokens = set()
        hub.service.put(1, names=["Todo"])
        yield hub


@pytest.mark.parametrize("key", [PEM, PEM.replace("\n", "\\n")])
async def test_a_token_is_asked_for_once_and_used(tmp_path: Path, key: str) -> None:
    """The App signs for it with its key; where it is installed is found by the repository."""
    async with app(tmp_path, key) as hub:
        await hub.todo()
        await hub.todo()
        asked = [str(r).partition("?")[0] for r in hub.server.asked]
        signature = hub.server.asked[0].headers["authorization"].removeprefix("Bearer ")

    claims = jwt.decode(signature, KEY.public_key(), algorithms=["RS256"])
    assert claims["iss"] == "5"
    assert 0 < claims["exp"] - claims["iat"] <= 600
    assert asked == [
        "GET /api/v3/repos/octo-org/hello-world/installation",
        "POST /api/v3/app/installations/77/access_tokens",
        "GET /api/v3/repos/octo-org/hello-world/issues",
        "GET /api/v3/repos/octo-org/hello-world/issues",
    ]


async def test_a_token_is_renewed_before_it_ends(tmp_path: Path, mock_clock: MockClock) -> None:
    """It lives for an hour; what was remembered with the old one holds with the new one."""
    mock_clock.rate = 1.0
    async with app(tmp_path, installation_id=77) as hub:
        hub.service.remaining = 5000
        await hub.read(1)
        mock_clock.jump(51 * 60)
        counted = hub.service.counted
        await hub.read(1)

        assert hub.service.minted == 2
        assert hub.service.counted == counted + 1  # the token; the issue had not changed


async def test_a_refused_token_is_renewed_once(tmp_path: Path) -> None:
    """As after it was revoked; a second refusal is an error."""
    async with app(tmp_path, installation_id=77) as hub:
        await hub.todo()
        hub.service.tokens = {"revoked"}
        assert await hub.todo() == ["1"]
        assert hub.service.minted == 2
        hub.server.inject(Refuse(status=401), path="/issues$", times=2)
        with pytest.raises(TrackerError):
            await hub.todo()


async def test_many_questions_at_once_share_one_token(tmp_path: Path) -> None:
    """None waits for a connection that another one holds while it waits for the token."""
    from sortie.model import IssueId

    async with app(tmp_path, installation_id=77) as hub:
        for number in range(1, 30):
            hub.service.put(number, names=["Todo"])
        read = await hub.tracker.fetch_by_ids([IssueId(str(n)) for n in range(1, 30)])

        assert len(read.issues) == 29
        assert hub.service.minted == 1


async def test_no_text_holds_the_key_or_a_token(tmp_path: Path) -> None:
    """Neither an error nor a repr."""
    async with app(tmp_path, installation_id=77) as hub:
        await hub.todo()
        line = PEM.splitlines()[3]
        body = {"message": f"no: {line} ghs_77_minted1"}
        hub.server.inject(Refuse(status=422, body=body))
        with pytest.raises(TrackerError) as refused:
            await hub.todo()
        shown = f"{refused.value} {hub.tracker.client.credential!r} {hub.context!r}"

    assert line not in shown
    assert "ghs_77" not in shown


async def test_a_key_that_is_none_is_told(tmp_path: Path) -> None:
    """Without a word of it."""
    bad = "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END RSA PRIVATE KEY-----"
    async with app(tmp_path, bad, installation_id=77) as hub:
        with pytest.raises(TrackerError, match="cannot be used") as refused:
            await hub.todo()

    assert "c2VjcmV0" not in str(refused.value)
