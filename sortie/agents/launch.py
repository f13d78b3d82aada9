"""How an agent's process is started, and the checks before: its program and its directory."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import PurePosixPath

from msgspec import Struct

from sortie.agents import no_trace
from sortie.model import LOCAL, AgentError, ErrorKind, ProgramNotFound, TransportError
from sortie.model.hiding import repr_without
from sortie.transports import Command, Transport
from sortie.transports.walls import SandboxedTransport


class AgentLaunch(Struct, frozen=True, kw_only=True):
    """How a process is started; ``agent`` is its name in messages, ``traceparent`` as in
    SessionParams."""

    agent: str
    command: Command
    transport: Transport
    redacted: Callable[[str], str]
    traceparent: Callable[[], str | None] = no_trace

    __repr__ = repr_without("redacted", "traceparent")


async def resolve_command(
    command: str | tuple[str, ...] | None, default: str, transport: Transport, path: str | None
) -> tuple[str, ...]:
    """Return the argv that starts an agent, its program as an absolute path.

    A string is one program where it resolves as a whole (its path may hold spaces), else it is
    split like a POSIX shell does. ``path`` is the PATH to search. Raises AgentError:
    AGENT_NOT_FOUND, or RESPONSE_ERROR where the host could not be asked.
    """
    given = default if command is None else command
    argv = (given.strip(),) if isinstance(given, str) else given
    if not argv or not argv[0].strip():
        raise _not_found("agent.command is empty; name the agent's program, or leave the key out")
    if found := await _resolve(argv[0], transport, path):
        return (found, *argv[1:])
    words = _split(argv[0]) if isinstance(given, str) else argv
    if words != argv and (found := await _resolve(words[0], transport, path)):
        return (found, *words[1:])
    if isinstance(transport, SandboxedTransport) and transport.image is not None:
        raise _not_found(
            f"the agent's program {words[0]!r} is neither in the image {transport.image} of the"
            " sandbox nor in what is mounted there; add it to the image, or its directory to"
            " sandbox.read"
        )
    looked = " on PATH or beside Sortie's interpreter"
    if transport.host != LOCAL:
        looked = " on the PATH of the login there"
    raise _not_found(
        f"the agent's program {words[0]!r} was not found on {transport.host}"
        f"{'' if '/' in words[0] else looked}; install it or set agent.command to its absolute path"
    )


async def check_workspace(transport: Transport, workspace: str) -> None:
    """Raise AgentError INVALID_WORKSPACE_CWD unless the path is an existing absolute directory."""
    if not workspace.strip():
        raise _invalid("the session's workspace path is empty")
    if "\0" in workspace or not PurePosixPath(workspace).is_absolute():
        raise _invalid(f"the session's workspace {workspace!r} is not an absolute path")
    try:
        usable = await transport.files.contained("/", workspace)
    except TransportError as error:
        raise AgentError(
            ErrorKind.RESPONSE_ERROR,
            f"could not look at the workspace {workspace!r} on {transport.host}: {error}",
        ) from error
    if not usable:
        raise _invalid(
            f"the session's workspace {workspace!r} on {transport.host} does not exist"
            " or is not a directory"
        )


def _split(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise _not_found(f"agent.command {command!r} cannot be split: {error}") from error
    if not words or not words[0].strip():
        raise _not_found(f"agent.command {command!r} names no program")
    return words


async def _resolve(program: str, transport: Transport, path: str | None) -> str | None:
    if "\0" in program:
        return None
    try:
        return await transport.resolve_program(program, path)
    except ProgramNotFound:
        return None
    except TransportError as error:
        raise AgentError(
            ErrorKind.RESPONSE_ERROR,
            f"could not look for the agent's program {program!r} on {transport.host}: {error}",
        ) from error


def _not_found(message: str) -> AgentError:
    return AgentError(ErrorKind.AGENT_NOT_FOUND, message)


def _invalid(message: str) -> AgentError:
    return AgentError(ErrorKind.INVALID_WORKSPACE_CWD, message)
