"""Where a tracker is: one scheme, host and port, and a path before all others."""

from __future__ import annotations

import httpx2

from sortie.http.requests import HttpRequest
from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.addresses import is_endpoint

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class ServerEndpoint:
    """An address to which paths are added; nothing leads away from its server."""

    def __init__(self, base: httpx2.URL) -> None:
        self._base = base

    @staticmethod
    def of(address: str) -> ServerEndpoint:
        """Return the endpoint of an address. Raises TrackerError (INVALID) where it is none."""
        try:
            base = httpx2.URL(address.rstrip("/"))
        except httpx2.InvalidURL as exc:
            raise TrackerError(TrackerErrorKind.INVALID, f"tracker.endpoint: {exc}") from exc
        if not is_endpoint(address):
            shown = str(base.copy_with(userinfo=b"", query=None, fragment=None))
            what = f"tracker.endpoint: {shown!r} is no address of a server"
            raise TrackerError(TrackerErrorKind.INVALID, what)
        return ServerEndpoint(base)

    def __str__(self) -> str:
        return str(self._base)

    @property
    def host(self) -> str:
        """The name or address of the server."""
        return self._base.host

    def url(self, request: HttpRequest) -> httpx2.URL:
        """Return the address of a request. Raises TrackerError for one of another server."""
        if request.from_root:
            url = self._base.copy_with(raw_path=request.path.encode())
        else:
            url = httpx2.URL(f"{self._base}{request.path}")
        if request.params:
            url = url.copy_merge_params([(k, str(v)) for k, v in request.params])
        if not self._is_ours(url):
            what = f"{request.what}: that is on another server, {url.host}"
            raise TrackerError(TrackerErrorKind.CLOSED, what)
        return url

    def path_of(self, address: str, asked: HttpRequest) -> str | None:
        """Return an address that the server gave as a path of the endpoint.

        Where it names another server, as one behind a proxy may, the path that was ``asked`` gets
        its query; None where it has none either.
        """
        try:
            url = self._base.join(address)
        except httpx2.InvalidURL:
            return None
        if (path := self._below(url)) is not None:
            return path
        query = url.query.decode()
        return f"{asked.path.partition('?')[0]}?{query}" if query else None

    def redirected(self, url: str, location: str, attempt: str) -> str:
        """Return the path that a redirect leads to. Raises TrackerError for another server."""
        try:
            to = httpx2.URL(url).join(location)
        except httpx2.InvalidURL:
            to = httpx2.URL("")
        if (path := self._below(to)) is not None:
            return path
        raise TrackerError(
            TrackerErrorKind.CLOSED,
            f"{attempt}: it sends us to {to.scheme}://{to.host}, which is not followed; "
            "set tracker.endpoint to the address that is meant",
        )

    def elsewhere(self, url: str, location: str, attempt: str) -> httpx2.URL:
        """Return the address that a redirect leads to, on any server, as secure as this one.

        Raises TrackerError for what is no such address.
        """
        try:
            to = httpx2.URL(url).join(location)
        except httpx2.InvalidURL:
            to = httpx2.URL("")
        if to.host and to.scheme in ("https", self._base.scheme) and not to.userinfo:
            return to
        raise TrackerError(
            TrackerErrorKind.UNAVAILABLE, f"{attempt}: it sends us to no address of a server"
        )

    def _below(self, url: httpx2.URL) -> str | None:
        prefix = self._base.raw_path.decode().rstrip("/")
        path = url.raw_path.decode()
        if self._is_ours(url) and path.startswith(f"{prefix}/"):
            return path[len(prefix) :]
        return None

    def _is_ours(self, url: httpx2.URL) -> bool:
        base = self._base
        return (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
