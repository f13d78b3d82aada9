"""The description of Sandboxes, made of their definition."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes_api.sandbox_controller import VERSION, definition

_SCHEMAS = "#/components/schemas/"
_META = f"{_SCHEMAS}io.k8s.apimachinery.pkg.apis.meta.v1."
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
_LEASE = "io.k8s.api.coordination.v1.Lease"
_SANDBOX = "io.x-k8s.agents.v1beta1.Sandbox"


def describe_sandboxes(described: Any) -> None:
    """Add what may be asked of Sandboxes, which is what may be asked of leases."""
    for below in ("", "/{name}"):
        text = json.dumps(described["paths"][f"{_LEASES}{below}"])
        described["paths"][f"/apis/{VERSION}/namespaces/{{namespace}}/sandboxes{below}"] = (
            json.loads(text.replace(_LEASE, _SANDBOX).replace("Lease", "Sandbox"))
        )
    (version,) = definition()["spec"]["versions"]
    schema = _strict(version["schema"]["openAPIV3Schema"])
    schema["properties"]["metadata"] = {"$ref": f"{_META}ObjectMeta"}
    schemas = described["components"]["schemas"]
    schemas[_SANDBOX] = schema
    schemas[f"{_SANDBOX}List"] = {
        "type": "object",
        "required": ["items", "metadata"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"{_META}ListMeta"},
            "items": {"type": "array", "items": {"$ref": f"{_SCHEMAS}{_SANDBOX}"}},
        },
        "additionalProperties": False,
    }


def _strict(schema: Any) -> Any:
    """Return a schema whose objects have no other keys than those described, without defaults."""
    strict = {key: value for key, value in schema.items() if key != "default"}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            strict[key] = _strict(schema[key])
    if "properties" in schema:
        strict["properties"] = {name: _strict(one) for name, one in schema["properties"].items()}
        strict.setdefault("additionalProperties", False)
    return strict
