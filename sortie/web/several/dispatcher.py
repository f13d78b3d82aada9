"""Hands a request to the application of the workflow that its path names.

``/workflows/NAME/`` is what ``/`` is to a workflow with a server of its own, and each application
has the access rules before it. What names no workflow goes to the application of all.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from sortie.web.base_path import BASE

BELOW = "/workflows/"


def base_of_workflow(name: str) -> str:
    """Return the path below which a workflow is served."""
    return f"{BELOW}{name}"


class WorkflowDispatcher:
    """An ASGI application; ``workflows`` are those that work now, by name."""

    def __init__(self, root: ASGIApp, workflows: Mapping[str, ASGIApp]) -> None:
        self._root = root
        self._workflows = workflows

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        name, path = _split(str(scope.get("path", "")))
        app = None if name is None else self._workflows.get(name)
        if app is None or name is None:
            await self._root(scope, receive, send)
            return
        base = base_of_workflow(name)
        inner = {**scope, "path": path, BASE: base}
        raw = scope.get("raw_path")
        if raw is not None:
            inner["raw_path"] = bytes(raw)[len(base) :] or b"/"
        await app(inner, receive, send)


def _split(path: str) -> tuple[str | None, str]:
    """Return the name in a path, and the path below; names need no encoding, and have none."""
    if not path.startswith(BELOW):
        return None, path
    name, _, rest = path.removeprefix(BELOW).partition("/")
    return name, f"/{rest}"
