"""Objects as a published description wants them, with the least that it allows."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

_DESCRIPTION = Path(__file__).with_name("github.openapi.json.gz")
_TIME = "2026-01-02T03:04:05Z"


@cache
def _schemas() -> dict[str, Any]:
    with gzip.open(_DESCRIPTION, "rt") as file:
        found: dict[str, Any] = json.load(file)["components"]["schemas"]
    return found


def smallest(name: str, /, **own: Any) -> Any:
    """Return the smallest object of a schema, with these values in it."""
    return {**_of({"$ref": f"#/components/schemas/{name}"}, 0), **own}


def _of(schema: dict[str, Any], depth: int) -> Any:
    if (ref := schema.get("$ref")) is not None:
        return _of(_schemas()[ref.rpartition("/")[2]], depth + 1)
    for key in ("oneOf", "anyOf"):  # which null is none of, whatever stands beside them
        if key in schema:
            return _of(schema[key][0], depth + 1)
    if schema.get("nullable") and depth > 1:
        return None
    if "allOf" in schema:
        whole: dict[str, Any] = {}
        for part in schema["allOf"]:
            whole |= _of(part, depth + 1)
        return whole
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object" | None if "properties" in schema or schema.get("type") == "object":
            known = schema.get("properties", {})
            return {key: _of(known[key], depth + 1) for key in schema.get("required", ())}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case "string":
            shape = schema.get("format")
            return {"date-time": _TIME, "uri": "https://example.org/x"}.get(shape or "", "text")
    return {}
