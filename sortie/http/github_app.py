"""A GitHub App as a credential: its private key signs for tokens that live for an hour.

Rule: a token is asked for ten minutes before the one before it ends, and once at a 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import trio

from sortie.http.client import HttpClient, segment
from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind

LIFE = 50 * 60.0
"""Seconds for which a token is used; GitHub gives it an hour."""

_SIGNED_FOR = timedelta(minutes=9)  # GitHub takes ten at most

_BACKDATED = timedelta(minutes=1)  # as GitHub asks for, since clocks differ


class AppCredential:
    """The installation of an App. ``client`` is the one it belongs to, which sets it."""

    client: HttpClient

    def __init__(
        self, app_id: int, private_key: str, installation_id: int | None, repository: str
    ) -> None:
        self._app_id = app_id
        self._key = private_key.replace("\\n", "\n").strip() + "\n"
        self._installation = installation_id
        self._found: int | None = installation_id
        self._repository = repository
        self._token = ""
        self._ends = float("-inf")
        self._minting = trio.Lock()

    def __repr__(self) -> str:
        return f"AppCredential(app {self._app_id})"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key, each line of it, and the token of now."""
        lines = [line for line in self._key.splitlines() if not line.startswith("-----")]
        return tuple(secret for secret in (self._key.strip(), *lines, self._token) if secret)

    @property
    def identity(self) -> object:
        """The App and its installation."""
        return self._app_id, self._installation or self._repository

    async def headers(self) -> Mapping[str, str]:
        """Return the header of a token that lives a while yet."""
        async with self._minting:
            if trio.current_time() >= self._ends:
                await self._mint()
            return {"Authorization": f"Bearer {self._token}"}

    async def renew(self) -> bool:
        """Have the next request ask for another token."""
        self._ends = float("-inf")
        return True

    async def _mint(self) -> None:
        signed = {"Authorization": f"Bearer {self._signature()}"}
        if self._found is None:
            self._found = await self._find_installation(signed)
        answer = await self.client.ask(
            HttpRequest(
                method="POST",
                path=f"/app/installations/{self._found}/access_tokens",
                what=f"cannot get a token for the installation of GitHub App {self._app_id}",
                headers=signed,
                signed=False,
            )
        )
        self._token = str(answer.json()["token"])
        self._ends = trio.current_time() + LIFE

    async def _find_installation(self, signed: Mapping[str, str]) -> int:
        owner, _, name = self._repository.partition("/")
        answer = await self.client.ask(
            HttpRequest(
                path=f"/repos/{segment(owner)}/{segment(name)}/installation",
                what=f"cannot find the installation of GitHub App {self._app_id}",
                headers=signed,
                signed=False,
            )
        )
        return int(answer.json()["id"])

    def _signature(self) -> str:
        import jwt  # here, as only an App needs the package

        now = self.client.server_now()
        claims = {
            "iat": int((now - _BACKDATED).timestamp()),
            "exp": int((now + _SIGNED_FOR - _BACKDATED).timestamp()),
            "iss": str(self._app_id),
        }
        try:
            return jwt.encode(claims, self._key, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError) as exc:
            raise TrackerError(
                TrackerErrorKind.CLOSED,
                f"the private key of GitHub App {self._app_id} cannot be used; tracker.api_key "
                "needs the PEM that GitHub gave",
            ) from exc
