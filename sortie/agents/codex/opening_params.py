"""What Codex is told as it starts, as a thread is opened and as a turn begins; pure."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from sortie.agents import McpServer
from sortie.agents.codex.settings import DEFAULT_BASE_URL, FULL_ACCESS, KEY_NAMES, CodexSettings

_PROVIDER = "sortie"


def key_name(settings: CodexSettings, env: Mapping[str, str]) -> str | None:
    """Return the variable whose key is used; None where Codex goes by its own configuration."""
    if settings.provider is not None:
        return None
    return next((name for name in KEY_NAMES if env.get(name, "").strip()), None)


def start_arguments(
    settings: CodexSettings, key: str | None, base_url: str | None
) -> Iterator[str]:
    """Yield the arguments behind ``codex app-server``.

    Codex reads no variable of these for itself: of ``key``, it is told the name. The provider is
    that of the process, as a thread cannot have another one.
    """
    provider = settings.provider
    if key is not None:
        provider = _PROVIDER
        fields = {
            "name": "OpenAI by key",  # by the name OpenAI it would try websockets
            "base_url": base_url or DEFAULT_BASE_URL,
            "wire_api": "responses",
            "env_key": key,
        }
        table = ",".join(f"{name}={_text(value)}" for name, value in fields.items())
        yield from ("-c", f"model_providers.{provider}={{{table}}}")
    if provider is not None:
        yield from ("-c", f"model_provider={_text(provider)}")


def thread_params(
    settings: CodexSettings, workspace: str, server: McpServer | None
) -> Mapping[str, Any]:
    """Return the parameters with which a thread is begun or gone on with.

    The sandbox is read-only here, and the turn widens it: where a thread begins with another one,
    Codex notes the workspace as trusted in its configuration, and starts at once what a ``.codex``
    of the repository names, outside of any sandbox.
    """
    config: dict[str, Any] = {}
    if settings.effort is not None:
        config["model_reasoning_effort"] = settings.effort
    if server is not None:
        config["mcp_servers"] = {
            server.name: {
                "command": server.argv[0],
                "args": list(server.argv[1:]),
                "env": dict(server.env),
                "default_tools_approval_mode": "approve",
            }
        }
    params: dict[str, Any] = {
        "cwd": workspace,
        "sandbox": "read-only",
        "approvalPolicy": settings.approval_policy,
        "approvalsReviewer": "user",  # Sortie answers, and no other model
        "config": config,
    }
    if settings.model is not None:
        params["model"] = settings.model
    return params


def sandbox_policy(settings: CodexSettings, workspace: str) -> Mapping[str, Any]:
    """Return the policy of a turn."""
    if settings.sandbox == FULL_ACCESS:
        return {"type": "dangerFullAccess"}
    if settings.sandbox == "read-only":
        return {"type": "readOnly", "networkAccess": False}
    roots = [posixpath.join(workspace, ".git")] if settings.write_git else []
    return {
        "type": "workspaceWrite",
        "writableRoots": roots,
        "networkAccess": settings.network,
        "excludeTmpdirEnvVar": False,
        "excludeSlashTmp": False,
    }


def _text(value: str) -> str:
    """Return a string as TOML, in which one of JSON means the same."""
    return json.dumps(value)
