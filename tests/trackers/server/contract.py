"""Exchanges held to a published OpenAPI description: requests, their queries, and answers."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from openapi_core import Config, OpenAPI
from openapi_core.datatypes import RequestParameters
from openapi_core.exceptions import OpenAPIError
from werkzeug.datastructures import Headers, ImmutableMultiDict

from tests.trackers.server.exchange import Received, Reply

_PATCHES = ("application/merge-patch+json", "application/strategic-merge-patch+json")
_CONFIG = Config(extra_media_type_deserializers=dict.fromkeys(_PATCHES, json.loads))
"""The library reads no other JSON than that of the plain media type by itself."""


class Violation(AssertionError):
    """An exchange is not as the description says."""


class OpenApiContract:
    """A description of an API, as JSON in a file, which may be packed with gzip.

    ``prefix`` is what stands before its paths on the test server. Parameters of a query that the
    description does not have are a violation too: providers ignore them without a word. ``extend``
    adds to the description what it does not have.
    """

    def __init__(
        self, path: Path, prefix: str = "", extend: Callable[[Any], None] | None = None
    ) -> None:
        self._api, self._paths, self._sound = _described(path, extend)
        self._prefix = prefix

    def describes(self, request: Received) -> bool:
        """Tell whether there is such an operation in the description."""
        asked = _Asked(request, self._prefix)
        parts = asked.path.strip("/").split("/")
        fitting = (t for t in self._paths if _fits(t.strip("/").split("/"), parts))
        return any(asked.method in self._paths[template] for template in fitting)

    def check_request(self, request: Received) -> None:
        """Raise Violation where a request is not as described."""
        asked = _Asked(request, self._prefix)
        if (digest := _digest(asked)) in self._sound:
            return
        try:
            self._api.validate_request(asked)
        except OpenAPIError as exc:
            raise Violation(f"{request}: {_told(exc)}") from exc
        self._check_query(request, asked)
        self._sound.add(digest)

    def check_answer(self, request: Received, reply: Reply) -> None:
        """Raise Violation where an answer to a described request is not as described."""
        asked, answered = _Asked(request, self._prefix), _Answered(reply)
        if (digest := _digest(asked, answered)) in self._sound:
            return
        try:
            self._api.validate_response(asked, answered)
        except OpenAPIError as exc:
            raise Violation(f"{request} answered {reply.status}: {_told(exc)}") from exc
        self._sound.add(digest)

    def _check_query(self, request: Received, asked: _Asked) -> None:
        template = self._template(asked.path)
        item = self._paths[template]
        described = [*item.get("parameters", []), *item[asked.method].get("parameters", [])]
        known = {p["name"] for p in described if p["in"] == "query"}
        if unknown := sorted(set(request.query) - known):
            raise Violation(f"{request}: {template} has no parameter {', '.join(unknown)}")

    def _template(self, path: str) -> str:
        parts = path.strip("/").split("/")
        fitting = [t for t in self._paths if _fits(t.strip("/").split("/"), parts)]
        return min(fitting, key=lambda template: template.count("{"))


class _Asked:
    """A request in the shape that the library asks for."""

    def __init__(self, request: Received, prefix: str) -> None:
        self._request = request
        self.path = request.path.removeprefix(prefix)
        self.method = request.method.lower()
        self.host_url = "https://described.invalid"
        self.full_url_pattern = f"{self.host_url}{self.path}"
        self.body = request.body or None
        self.content_type = request.headers.get("content-type", "").partition(";")[0]
        self.parameters = RequestParameters(
            query=ImmutableMultiDict(request.pairs),
            header=Headers(list(request.headers.items())),
            cookie=ImmutableMultiDict(),
            path={},
        )


class _Answered:
    def __init__(self, reply: Reply) -> None:
        self.data = reply.content
        self.status_code = reply.status
        self.content_type = reply.content_type.partition(";")[0]
        self.headers = Headers(list(reply.headers.items()))


def _digest(asked: _Asked, answered: _Answered | None = None) -> bytes:
    """Return what is the same for two exchanges that a description judges alike: they differ in
    the address of the server alone."""
    parts: list[object] = [asked.method, asked.path, asked.parameters.query]
    parts += [(n, v) for n, v in asked.parameters.header.items() if n.lower() != "host"]
    content = asked.body or b""
    if answered is not None:
        parts += [answered.status_code, answered.content_type, list(answered.headers.items())]
        content += answered.data
    return hashlib.blake2b(repr((parts, asked.body is None)).encode() + content).digest()


def _fits(template: list[str], parts: list[str]) -> bool:
    return len(template) == len(parts) and all(
        known.startswith("{") or known == part for known, part in zip(template, parts, strict=True)
    )


@cache
def _described(
    path: Path, extend: Callable[[Any], None] | None
) -> tuple[OpenAPI, Mapping[str, Any], set[bytes]]:
    """Return a description, the items of its paths, and the digests of exchanges that were found
    to be as described, which are held to it once in a process: that takes 20 ms."""
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    described = json.loads(text)
    if extend is not None:
        extend(described)
    described["servers"] = [{"url": "https://described.invalid"}]
    resolved = {t: _resolved(item, described) for t, item in described["paths"].items()}
    return OpenAPI.from_dict(described, config=_CONFIG), resolved, set()


def _resolved(item: Mapping[str, Any], described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a path's item with its parameters in place of references to them."""

    def follow(parameter: Any) -> Any:
        while "$ref" in parameter:
            target = described
            for name in parameter["$ref"].removeprefix("#/").split("/"):
                target = target[name]
            parameter = target
        return parameter

    return {
        key: [follow(p) for p in value]
        if key == "parameters"
        else {**value, "parameters": [follow(p) for p in value.get("parameters", [])]}
        if isinstance(value, dict)
        else value
        for key, value in item.items()
    }


def _told(exc: BaseException) -> str:
    """Return what an error of the library says, with what it was raised from."""
    texts = []
    found: BaseException | None = exc
    while found is not None:
        errors = getattr(found, "schema_errors", ())
        texts += [f"{'.'.join(map(str, e.absolute_path))}: {e.message[:200]}" for e in errors]
        if not errors:
            texts.append(str(found)[:300])
        found = found.__cause__
    return "; ".join(dict.fromkeys(texts))
