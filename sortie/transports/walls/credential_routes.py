"""Ways through the proxy on which a credential is put into requests.

A tunnel cannot be looked into. So an agent asks the proxy itself, over plain HTTP, for what is
below ``/name``; the proxy puts the credential in and speaks TLS with the real server.

Rule: a credential goes to the scheme, host and port that it is for, below one path, and only into
a request that holds its placeholder: a page that an agent's browser shows does not know that.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from sortie.transports.walls.placeholders import HiddenCredentials, Placeholder
from sortie.transports.walls.request_target import Headers, authority

_CREDENTIAL_HEADERS = frozenset(
    {b"api-key", b"authorization", b"private-token", b"x-api-key", b"x-goog-api-key"}
)

_GIT_ENDINGS = ("", ".git")
_GIT_PATHS = ("/info/", "/git-upload-pack", "/git-receive-pack", "/objects/", "/HEAD")
"""What git asks for below the address of a repository: https://git-scm.com/docs/http-protocol"""


class CredentialRoute(Struct, frozen=True, kw_only=True):
    """What is asked below ``/name`` goes to a server, over TLS unless it has none.

    ``within`` is the path that the credential is for, "" where it is for all. With ``git`` it is
    that of a repository, and the credential is for what git asks for there.
    """

    name: str
    tls: bool
    host: str
    port: int
    within: str
    placeholders: tuple[Placeholder, ...]
    git: bool = False

    @property
    def authority(self) -> str:
        """The host, with its port where that is not the usual one."""
        return authority(self.host, self.port, 443 if self.tls else 80)

    @property
    def origin(self) -> str:
        """The URL of the server, without a path."""
        return f"http{'s' if self.tls else ''}://{self.authority}"

    def is_for(self, path: str) -> bool:
        """Tell whether the credential is for a path, which has no dots.

        It is compared as it is written: of a path in other words nobody has told the agent.
        """
        plain = path.partition("?")[0]
        if self.git:
            places = [f"{self.within}{ending}" for ending in _GIT_ENDINGS]
            return plain.startswith(tuple(f"{at}{part}" for at in places for part in _GIT_PATHS))
        return plain == self.within or plain.startswith(f"{self.within}/")

    def exchange(self, headers: Headers) -> list[tuple[bytes, bytes]]:
        """Return an agent's headers with the credential in the place of its placeholder, asking
        for an answer that can be read."""
        changed = [(name, self._exchanged(name, value)) for name, value in headers]
        kept = [(name, value) for name, value in changed if name != b"accept-encoding"]
        return [*kept, (b"accept-encoding", b"identity")]

    def answer(self, before: Headers, after: Headers) -> RouteAnswer:
        """Return what an answer is passed through; ``before`` and ``after`` are the headers of its
        request without and with the credential."""
        return RouteAnswer(self, HiddenCredentials(self.placeholders, _changes(before, after)))

    def place(self, location: bytes) -> bytes:
        """Return where an answer leads to: to the proxy, where it is to this server."""
        origin = self.origin.encode()
        if location.startswith(b"/") and not location.startswith(b"//"):
            return f"/{self.name}".encode() + location
        if location == origin or location.startswith(origin + b"/"):
            return f"/{self.name}".encode() + location.removeprefix(origin)
        return location

    def _exchanged(self, name: bytes, value: bytes) -> bytes:
        if name not in _CREDENTIAL_HEADERS:
            return value
        found = (placeholder.exchanged(value) for placeholder in self.placeholders)
        return next((real for real in found if real is not None), value)


class RouteAnswer:
    """An answer on a route: without the credential, and leading back to the route."""

    def __init__(self, route: CredentialRoute, hidden: HiddenCredentials) -> None:
        self._route = route
        self._hidden = hidden
        self.body = hidden.body
        self.rest = hidden.rest

    def headers(self, headers: Headers) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers that are passed on. Raises Unreachable for a body in an encoding."""
        return [
            (name, self._route.place(value) if name == b"location" else value)
            for name, value in self._hidden.headers(headers)
        ]


def _changes(before: Headers, after: Headers) -> list[tuple[bytes, bytes]]:
    pairs = zip(_credentials(before), _credentials(after), strict=True)
    return [(old, new) for old, new in pairs if old != new]


def _credentials(headers: Headers) -> list[bytes]:
    return [value for name, value in headers if name in _CREDENTIAL_HEADERS]
