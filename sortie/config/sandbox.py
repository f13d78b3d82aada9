"""The settings of ``sandbox``: the wall around an agent, its tools and the commands of verify."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic_core import PydanticCustomError

from sortie.config.block import Block
from sortie.config.report import Finding
from sortie.config.values import CheckWithSchema, Command, PathText, choice, needs
from sortie.model.allowed_hosts import allowed_host

NETWORKS = ("none", "full")
KINDS = ("none", "bubblewrap", "command")


def _network() -> CheckWithSchema:
    """Accept one of the words, or a list of hosts."""
    accepted = f"{', '.join(NETWORKS)} or a list of hosts"

    def check(value: Any) -> Any:
        if isinstance(value, str) and value in NETWORKS:
            return value
        if not isinstance(value, list | tuple) or not value:
            raise needs(accepted)
        for at, host in enumerate(value):
            try:
                allowed_host(host if isinstance(host, str) else "")
            except ValueError as exc:
                wrong = {"what": str(exc), "item": at}
                raise PydanticCustomError("needs", "{what}", wrong) from None
        return tuple(value)

    shape = {
        "oneOf": [
            {"type": "string", "enum": list(NETWORKS)},
            {"type": "array", "items": {"type": "string"}},
        ]
    }
    return CheckWithSchema(check, shape=shape)


class SandboxSettings(Block):
    """``read`` and ``write`` are what a run sees and may change besides its workspace, and ``hide``
    what of these it does not see. ``network`` is none, all of it, or these hosts alone. ``command``
    is the argv that the agent's is put behind. With ``credentials`` proxy the agent has
    placeholders of its keys, which are exchanged on the way to where they belong."""

    kind: Annotated[Literal["none", "bubblewrap", "command"], choice(*KINDS)] = "none"
    read: tuple[PathText, ...] = ()
    write: tuple[PathText, ...] = ()
    hide: tuple[PathText, ...] = ()
    network: Annotated[Literal["none", "full"] | tuple[str, ...], _network()] = "full"
    command: Command = None
    credentials: Annotated[Literal["agent", "proxy"], choice("agent", "proxy")] = "agent"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that a run may reach where it may not reach all or none."""
        return self.network if isinstance(self.network, tuple) else ()


_BUBBLEWRAP = ("read", "write", "hide", "network", "credentials")


def sandbox_findings(sandbox: SandboxSettings, *, on_hosts: bool, leads: bool) -> Iterator[Finding]:
    """Yield what of a sandbox cannot be had, and what means nothing to its kind.

    ``on_hosts`` tells whether runs are on SSH hosts, and ``leads`` whether the agent can be led to
    its model through a proxy."""
    kind, given = sandbox.kind, sandbox.model_fields_set
    if kind == "none":
        for key in sorted(given - {"kind"}):
            message = "means nothing without sandbox.kind"
            yield Finding(path=("sandbox", key), message=message, severity="warning")
        return
    if on_hosts:
        message = "is for runs on this machine; there is none yet on worker.ssh_hosts"
        yield Finding(path=("sandbox", "kind"), message=message)
    for key in ("read", "write", "hide"):
        if "/" in getattr(sandbox, key):
            message = "holds / itself, which is no wall; name directories in it"
            yield Finding(path=("sandbox", key), message=message)
    if kind == "command" and sandbox.command is None:
        message = "is required with kind: command"
        yield Finding(path=("sandbox", "command"), message=message, because=("sandbox", "kind"))
    if sandbox.credentials == "proxy" and kind != "command":
        path = ("sandbox", "credentials")
        if sandbox.network == "full":
            message = "proxy needs sandbox.network to be none or a list of hosts"
            yield Finding(path=path, message=message, needs=(("sandbox", "network"),))
        if not leads:
            message = "proxy is not for this agent, which cannot be led to its model through one"
            yield Finding(path=path, message=message, because=("agent", "kind"))
    foreign = _BUBBLEWRAP if kind == "command" else ("command",)
    for key in foreign:
        if key in given:
            message = f"means nothing to kind: {kind}"
            yield Finding(path=("sandbox", key), message=message, severity="warning")
