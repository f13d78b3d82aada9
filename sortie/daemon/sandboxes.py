"""The walls that the settings put around the programs of runs, and what is found inside."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from sortie import agents
from sortie.config.settings import Settings
from sortie.transports import Transport
from sortie.transports.walls import SandboxedTransport

_OF_DATABASE = ("", "-wal", "-shm", "-journal", ".daemon", ".lock", ".transcripts", ".events")
"""The ends of the names of what a daemon writes beside its database, with the database itself."""


def sandboxed(
    settings: Settings,
    outside: Transport,
    environ: Mapping[str, str],
    *,
    mirror: str | None,
    secret_files: Sequence[str],
) -> SandboxedTransport | None:
    """Return the wall for runs of these settings on this machine, None where they want none.

    ``mirror`` is whose objects the workspaces borrow, and ``secret_files`` are not seen inside.
    """
    sandbox = settings.sandbox
    match sandbox.kind:
        case "none":
            return None
        case "command":
            from sortie.transports.walls.wrapper import WrapperTransport

            assert sandbox.command is not None
            return WrapperTransport(outside, _words(sandbox.command))
    from sortie.transports.walls.bubblewrap import BubblewrapTransport, Enclosure

    beside = tuple(f"{settings.db_path}{end}" for end in _OF_DATABASE)
    identity = settings.repository.identity_file
    keys = (*settings.worker.ssh_identity_files, *(() if identity is None else (identity,)))
    enclosure = Enclosure(
        read=(*(() if mirror is None else (mirror,)), *sandbox.read),
        write=sandbox.write,
        own=tuple(_kept(settings, environ)),
        hide=(*sandbox.hide, *beside, *keys, *secret_files),
        has_network=sandbox.network == "full",
    )
    return BubblewrapTransport(outside, enclosure)


def _kept(settings: Settings, environ: Mapping[str, str]) -> Sequence[str]:
    """Return the directories in which the agents of a run keep what is theirs."""
    command = settings.agent.command
    reviewer = settings.self_review.agent if settings.self_review is not None else None
    kept: list[str] = []
    for kind in dict.fromkeys((settings.agent.kind, reviewer or settings.agent.kind)):
        adapter = agents.ADAPTERS.load(kind)
        own = command if kind == settings.agent.kind and command is not None else None
        words = _words(adapter.default_command if own is None else own)
        kept += adapter.keeps(environ, words)
    return kept


def _words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    if not isinstance(command, str):
        return command
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return (command,)
