"""Routes of the API: one description makes the route and its entry in the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal
from urllib.parse import unquote

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

Handler = Callable[[Request], Awaitable[Response]]

JSON = "application/json"

Schema = Mapping[str, Any]
"""A JSON schema."""


class Parameter(Struct, frozen=True, kw_only=True):
    """What a path or query may hold; ``about`` is a sentence without its full stop. A path has an
    ``example``."""

    name: str
    about: str
    schema: Schema
    place: Literal["path", "query", "header"] = "query"
    example: str | None = None


class DescribedAnswer(Struct, frozen=True, kw_only=True):
    """What a status means. ``body`` is the type that is written as JSON, or its schema; ``as_text``
    is the media type of text in which it may come as well."""

    about: str
    body: Any = None
    media_type: str = JSON
    as_text: str | None = None


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path.

    ``failures`` are the statuses, beyond those that every request may meet, that come as errors.
    ``takes`` is the schema of the JSON that a request brings, None where it brings nothing.
    """

    method: Literal["GET", "POST"]
    path: str
    about: str
    endpoint: Handler
    answers: Mapping[int, DescribedAnswer]
    parameters: tuple[Parameter, ...] = ()
    failures: Mapping[int, str] | None = None
    takes: Schema | None = None

    def route(self) -> Route:
        """Return the route that serves it."""
        return Route(self.path, self.endpoint, methods=[self.method])


IDENTIFIER = Parameter(
    name="identifier",
    place="path",
    about="the issue's identifier, percent-encoded, or its id",
    schema={"type": "string", "minLength": 1},
    example="DEMO-1",
)
RUN_ID = Parameter(
    name="run_id",
    place="path",
    about="the run's id",
    schema={"type": "string", "minLength": 1},
    example="6f1f2b1e-6a0e-4f53-9f3e-0a7d2c9b8e11",
)


def identifier_in(request: Request) -> str:
    """Return the issue that a path names; what the middleware left encoded is decoded here."""
    return unquote(request.path_params["identifier"])


def number_parameter(name: str, about: str, default: int, most: int) -> Parameter:
    """Describe a number from 1 to ``most`` in a query."""
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter(name=name, about=about, schema=schema)


def number_in(request: Request, name: str, default: int, most: int, least: int = 1) -> int | None:
    """Return the number that a query gives, or ``default``; None where it is not in the range."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)):
        return None
    return int(text) if least <= int(text) <= most else None
