"""A request as a test server received it, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request; ``path`` is as it was sent, still encoded, and header names are in lower case.

    ``pairs`` are the parameters of its query, ``query`` the last of each name. ``client`` is the
    address of the machine that sent it.
    """

    number: int  # from 1, in the order of arrival
    method: str
    path: str
    pairs: tuple[tuple[str, str], ...]
    headers: Mapping[str, str]
    body: bytes = b""
    origin: str = ""  # such as http://127.0.0.1:4711
    client: str = ""

    @property
    def query(self) -> Mapping[str, str]:
        """Its parameters by name; of several with one name the last."""
        return dict(self.pairs)

    @property
    def json(self) -> Any:
        """What the body says; None for none. Raises ValueError."""
        return json.loads(self.body) if self.body else None

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path, decoded."""
        return tuple(unquote(part) for part in self.path.strip("/").split("/"))

    @property
    def url(self) -> str:
        """The whole address without its query."""
        return f"{self.origin}{self.path}"

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.pairs)
        return f"{self.method} {self.path}{'?' if query else ''}{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. ``body`` is sent as JSON, bytes as they are, and None as no body at all.

    ``sound``: it has to be what the description says of it; one that a test has spoiled has not.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json; charset=utf-8"
    sound: bool = True

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def received(
    number: int, method: str, target: str, headers: Mapping[str, str], body: bytes, origin: str
) -> Received:
    """Return a request from what came over the wire."""
    parts = urlsplit(target)
    return Received(
        number=number,
        method=method,
        path=parts.path,
        pairs=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        origin=origin,
    )
