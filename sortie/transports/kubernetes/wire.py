"""The libraries that speak to an API server; loaded in a thread, as that takes a second or more."""

from __future__ import annotations

import ssl
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import httpx_ws
import kr8s
import trio
from kr8s._auth import KubeAuth
from kr8s.asyncio import api as open_api

from sortie.transports.kubernetes.under_lease import bound_request

__all__ = ["BoundedSocket", "httpx", "httpx_ws", "kr8s", "open_api"]

# A server that is newer than kr8s is no fault of anybody's.
warnings.filterwarnings("ignore", message="Kubernetes version", category=UserWarning)

_GOODBYE_BOUND = 1.0  # seconds


class BoundedSocket(httpx_ws.AsyncWebSocketSession):
    """A WebSocket that is closed in a moment, also where the server takes nothing any more."""

    async def close(self, code: int = 1000, reason: str | None = None) -> None:
        """Say goodbye, and close the connection."""
        with trio.move_on_after(_GOODBYE_BOUND):
            await super().close(code, reason)
            return
        await self.stream.aclose()


class TransientFilesAuth(KubeAuth):
    """Has keys and certificates of a kubeconfig in files only until TLS has read them; kr8s would
    leave them in TMPDIR for ever."""

    _tls: ssl.SSLContext | bool = True

    async def reauthenticate(self) -> None:
        """Read the credentials anew."""
        try:
            await super().reauthenticate()
            self._tls = await super().ssl_context()  # type: ignore[no-untyped-call]
        finally:
            for file in self._files_made():
                Path(file).unlink(missing_ok=True)

    async def ssl_context(self) -> ssl.SSLContext | bool:
        """Return what was made of the credentials when they were read."""
        return self._tls

    def _files_made(self) -> list[str]:
        made = (
            (self._user, "client-key-data", self.client_key_file),
            (self._user, "client-certificate-data", self.client_cert_file),
            (self._cluster, "certificate-authority-data", self.server_ca_file),
        )
        return [str(file) for known, name, file in made if file and known and name in known]


_where_auth_is_made: Any = import_module("kr8s._api")
_where_auth_is_made.KubeAuth = TransientFilesAuth
_create_session = _where_auth_is_made.Api._create_session


async def _create_bounded_session(api: Any) -> None:
    """Make the client of an API as kr8s does, whose connections are bounded by the lease."""
    await _create_session(api)
    api._session.event_hooks = {"request": [bound_request]}


_where_auth_is_made.Api._create_session = _create_bounded_session
