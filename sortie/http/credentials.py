"""What a request is signed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Credential(Protocol):
    """Signs requests; its ``repr`` shows no secret."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of a signed request. Raises TrackerError where there are none."""

    async def renew(self) -> bool:
        """After a 401: get another one, and tell whether the request is worth another try."""

    @property
    def secrets(self) -> Sequence[str]:
        """What must not be seen in any text."""

    @property
    def identity(self) -> object:
        """What is the same for two credentials of one account, which share limits."""


class FixedCredential:
    """A token or a password that stays as it is."""

    def __init__(self, headers: Mapping[str, str], secrets: Sequence[str]) -> None:
        self._headers = headers
        self.secrets = tuple(secrets)

    def __repr__(self) -> str:
        return f"FixedCredential({', '.join(self._headers)})"

    async def headers(self) -> Mapping[str, str]:
        """Return the same headers always."""
        return self._headers

    @property
    def identity(self) -> object:
        """The headers."""
        return tuple(self._headers.items())

    async def renew(self) -> bool:
        """Return False: there is no other."""
        return False


def bearer(token: str) -> FixedCredential:
    """Return a token that is sent as ``Authorization: Bearer``."""
    return FixedCredential({"Authorization": f"Bearer {token}"}, [token])


def header(name: str, token: str) -> FixedCredential:
    """Return a token that is sent, as it is, in a header of this name."""
    return FixedCredential({name: token}, [token])


def basic(user: str, password: str) -> FixedCredential:
    """Return a name and a password or token, sent as ``Authorization: Basic``."""
    from base64 import b64encode

    encoded = b64encode(f"{user}:{password}".encode()).decode()
    return FixedCredential({"Authorization": f"Basic {encoded}"}, [password, encoded])
