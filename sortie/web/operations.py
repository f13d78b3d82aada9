"""A route as it is served and as clients are told of it: one description makes both.

The application's routes and the OpenAPI document are made from the same list of operations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Endpoint = Callable[[Request], Awaitable[Response]]

JSON = "application/json"

Schema = Mapping[str, Any]
"""A JSON schema."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a path or query may hold; ``about`` is a sentence without its full stop. A path has an
    ``example``."""

    name: str
    about: str
    schema: Schema
    place: Literal["path", "query", "header"] = "query"
    example: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a status means. ``body`` is the type that is written as JSON, or its schema; ``as_text``
    is the media type of text in which it may come as well."""

    about: str
    body: Any = None
    media_type: str = JSON
    as_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path.

    ``failures`` are the statuses, beyond those that every request may meet, that come as errors.
    """

    method: Literal["GET", "POST"]
    path: str
    about: str
    endpoint: Endpoint
    answers: Mapping[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    failures: Mapping[int, str] | None = None

    def route(self) -> Route:
        """Return the route that serves it."""
        return Route(self.path, self.endpoint, methods=[self.method])
