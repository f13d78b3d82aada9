"""The OpenAPI document, made from the operations that are served and the types of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from sortie import __version__
from sortie.web.access import PROBES
from sortie.web.operations import JSON, DescribedAnswer, Operation, Parameter, Schema

DESCRIPTION = (
    "What a running daemon of Sortie does, and the commands that steer it. GETs are open on a"
    " loopback address; everything else needs the token, or the session of a browser that was"
    " signed in by a link of 'sortie open'. Unknown is null, never 0. Times are RFC 3339 in UTC."
)

_ERROR_SCHEMA: Schema = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "additionalProperties": False,
            "properties": {
                "code": {"type": "string", "description": "a word for programs"},
                "message": {"type": "string", "description": "a sentence for people"},
            },
        }
    },
}

_COMMON_FAILURES = {
    400: "the request cannot be understood, or does not say where it ends",
    401: "the token or a session is needed",
    403: "Host or Origin does not name this daemon",
    413: "the body has more than 64 KiB",
    500: "an internal error; the log has its details",
}

_TEMPLATE = "#/components/schemas/{model}"


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Make the document; this takes long enough to be done in a thread."""
    bodies = [
        answer.body
        for operation in operations
        for answer in operation.answers.values()
        if answer.body is not None and not isinstance(answer.body, dict)
    ]
    kinds = list(dict.fromkeys(bodies))
    schemas, shared = TypeAdapter.json_schemas(
        [(kind, "serialization", TypeAdapter(kind)) for kind in kinds], ref_template=_TEMPLATE
    )
    found = {kind: schemas[kind, "serialization"] for kind in kinds}
    paths: dict[str, Any] = {}
    for operation in operations:
        described = _operation(operation, found)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sortie", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR_SCHEMA, **shared.get("$defs", {})},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, schemas: dict[Any, Any]) -> dict[str, Any]:
    failures = {**_COMMON_FAILURES, **(operation.failures or {})}
    if operation.path in PROBES:
        del failures[403]
    reads = operation.method == "GET"
    described: dict[str, Any] = {
        "operationId": _id(operation),
        "summary": operation.about,
        "security": [{}, {"token": []}] if reads else [{"token": []}],
        "responses": {
            **{str(status): _error(about) for status, about in failures.items()},
            **{str(status): _answer(a, schemas) for status, a in operation.answers.items()},
        },
    }
    if operation.parameters:
        described["parameters"] = [_parameter(one) for one in operation.parameters]
    if operation.takes is not None:
        content = {JSON: {"schema": dict(operation.takes)}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _id(operation: Operation) -> str:
    words = operation.path.replace("/api/v1", "").replace(".json", "").split("/")
    name = "_".join(word.strip("{}").replace("-", "_") for word in words if word)
    return f"{operation.method.lower()}_{name}"


def _parameter(parameter: Parameter) -> dict[str, Any]:
    example = {} if parameter.example is None else {"example": parameter.example}
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.place == "path",
        "description": parameter.about,
        "schema": dict(parameter.schema),
        **example,
    }


def _answer(answer: DescribedAnswer, schemas: dict[Any, Any]) -> dict[str, Any]:
    body = answer.body
    if body is None:
        schema: Any = {"type": "string"}
    else:
        schema = body if isinstance(body, dict) else schemas[body]
    content = {answer.media_type: {"schema": schema}}
    if answer.as_text is not None:
        content[answer.as_text] = {"schema": {"type": "string"}}
    return {"description": answer.about, "content": content}


def _error(about: str) -> dict[str, Any]:
    schema = {"$ref": _TEMPLATE.format(model="Error")}
    return {"description": about, "content": {JSON: {"schema": schema}}}
