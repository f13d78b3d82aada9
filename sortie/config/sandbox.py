"""The settings of ``sandbox``: the wall around an agent, its tools and the commands of verify."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic_core import PydanticCustomError

from sortie.config.block import Block
from sortie.config.report import Finding
from sortie.config.values import (
    CheckWithSchema,
    Command,
    HostPathText,
    Line,
    amount,
    choice,
    needs,
    whole,
)
from sortie.config.worker import WorkerSettings
from sortie.model.allowed_hosts import allowed_host

NETWORKS = ("none", "full")
KINDS = ("none", "bubblewrap", "container", "command")


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


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SMALLEST_MEMORY = 64 << 20


def _size() -> CheckWithSchema:
    """Accept bytes as a number, or a text as 512m or 4g."""

    def check(value: Any) -> Any:
        found = re.fullmatch(r"([0-9]{1,15})([kmg]?)", str(value).lower(), re.ASCII)
        if isinstance(value, bool) or found is None:
            raise needs("a number of bytes, or a text as 512m or 4g")
        size = int(found[1]) * _UNITS[found[2]]
        if size < _SMALLEST_MEMORY:
            raise needs("at least 64m")
        return size

    shape = {"oneOf": [{"type": "integer", "minimum": _SMALLEST_MEMORY}, {"type": "string"}]}
    return CheckWithSchema(check, shape=shape)


class SandboxSettings(Block):
    """``read`` and ``write`` are what a run sees and may change besides its workspace, and ``hide``
    what of these it does not see. ``network`` is none, all of it, or these hosts alone. ``command``
    is the argv that the agent's is put behind. With ``credentials`` proxy the agent has
    placeholders of its keys, which are exchanged on the way to where they belong.

    A container is made of ``image`` by ``engine``, the first that is installed where none is named;
    ``memory`` in bytes, ``cpus`` in cores and ``pids`` bound it. With ``devcontainer`` its image is
    the one that the base of the repository names."""

    kind: Annotated[Literal["none", "bubblewrap", "container", "command"], choice(*KINDS)] = "none"
    read: tuple[HostPathText, ...] = ()
    write: tuple[HostPathText, ...] = ()
    hide: tuple[HostPathText, ...] = ()
    network: Annotated[Literal["none", "full"] | tuple[str, ...], _network()] = "full"
    command: Command = None
    credentials: Annotated[Literal["agent", "proxy"], choice("agent", "proxy")] = "agent"
    image: Line | None = None
    devcontainer: bool = False
    engine: Line | None = None
    memory: Annotated[int, _size()] | None = None
    cpus: Annotated[float, amount()] | None = None
    pids: Annotated[int, whole(16)] | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that a run may reach where it may not reach all or none."""
        return self.network if isinstance(self.network, tuple) else ()


_PLACES = ("read", "write", "hide", "network", "credentials")
_CONTAINER = ("image", "devcontainer", "engine", "memory", "cpus", "pids")
_FOREIGN = {
    "bubblewrap": ("command", *_CONTAINER),
    "container": ("command",),
    "command": (*_PLACES, *_CONTAINER),
}
"""What means nothing to a kind."""


def sandbox_findings(
    sandbox: SandboxSettings, worker: WorkerSettings, *, leads: bool, has_repository: bool
) -> Iterator[Finding]:
    """Yield what of a sandbox cannot be had, and what means nothing to its kind.

    ``leads`` tells whether the agent can be led to its model through a proxy."""
    kind, given = sandbox.kind, sandbox.model_fields_set
    if kind == "none":
        for key in sorted(given - {"kind"}):
            message = "means nothing without sandbox.kind"
            yield Finding(path=("sandbox", key), message=message, severity="warning")
        return
    if worker.hosts:
        yield from _remote_findings(worker)
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
    if kind == "container":
        path = ("sandbox", "devcontainer")
        if sandbox.image is None and not sandbox.devcontainer:
            message = "is required with kind: container"
            yield Finding(path=("sandbox", "image"), message=message, because=("sandbox", "kind"))
        if sandbox.image is not None and sandbox.devcontainer:
            message = "cannot be had beside sandbox.image: leave one of them out"
            yield Finding(path=path, message=message, because=("sandbox", "image"))
        if sandbox.devcontainer and not has_repository:
            message = "needs repository.url, whose base names the image"
            yield Finding(path=path, message=message, needs=(("repository", "url"),))
        if sandbox.cpus == 0:
            yield Finding(path=("sandbox", "cpus"), message="needs more than 0")
    for key in _FOREIGN[kind]:
        if key in given:
            message = f"means nothing to kind: {kind}"
            yield Finding(path=("sandbox", key), message=message, severity="warning")


def _remote_findings(worker: WorkerSettings) -> Iterator[Finding]:
    """Yield what of a sandbox cannot be had where runs are on hosts."""
    if worker.kubernetes is not None:
        message = "is for runs on this machine and on SSH hosts; there is none yet in pods"
        yield Finding(path=("sandbox", "kind"), message=message)
        return
    if worker.ssh_secret_delivery == "inline":
        message = "is not for worker.ssh_secret_delivery: inline, with which a command is a shell's"
        delivery = ("worker", "ssh_secret_delivery")
        yield Finding(path=("sandbox", "kind"), message=message, because=delivery)
