"""What the stand-in says of itself: the versions and resources that clients as kubectl ask for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Json = dict[str, Any]

_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
_CORE = {
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "secrets": "Secret",
    "events": "Event",
}
_LEASES = {"leases": "Lease"}
_SANDBOXES = {"sandboxes": "Sandbox"}
_VERSION = {"groupVersion": "coordination.k8s.io/v1", "version": "v1"}
_GROUP = {"name": "coordination.k8s.io", "versions": [_VERSION], "preferredVersion": _VERSION}
_ANSWERS: dict[str, Json] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
}


def discovery_routes() -> Iterator[Route]:
    """Yield the routes by which a client learns what there is."""
    answers = {
        **_ANSWERS,
        "/api/v1": _resources("v1", _CORE),
        "/apis/coordination.k8s.io/v1": _resources("coordination.k8s.io/v1", _LEASES),
    }
    for path, answer in answers.items():
        yield Route(path, _told(answer))


def sandbox_resources() -> Json:
    """Return what there is of agent-sandbox."""
    return _resources("agents.x-k8s.io/v1beta1", _SANDBOXES)


async def tell_namespace(request: Request) -> JSONResponse:
    """Tell that a namespace is there: all are."""
    metadata = {"name": request.path_params["namespace"]}
    return JSONResponse({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata})


def _told(answer: Json) -> Any:
    async def tell(_: Request) -> JSONResponse:
        return JSONResponse(answer)

    return tell


def _resources(version: str, kinds: dict[str, str]) -> Json:
    found: list[Json] = [
        {
            "name": name,
            "singularName": kind.lower(),
            "namespaced": True,
            "kind": kind,
            "verbs": _VERBS,
        }
        for name, kind in kinds.items()
    ]
    if "pods" in kinds:
        verbs = ["create", "get"]
        found.append(
            {"name": "pods/exec", "namespaced": True, "kind": "PodExecOptions", "verbs": verbs}
        )
    return {"kind": "APIResourceList", "groupVersion": version, "resources": found}
