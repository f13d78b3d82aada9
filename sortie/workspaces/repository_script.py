"""Runs ``sh/repository.sh``: all that Sortie does with git where an agent's work is.

Rule: a credential goes into the environment of this one process, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from sortie.model import GitError
from sortie.model.git_urls import GitUrl
from sortie.transports import Command, Transport
from sortie.workspaces.git_values import GitAccess, complaint_in, git_variables
from sortie.workspaces.safe_git import script_text

NETWORK_LIMIT = 1800.0
"""Seconds that a fetch, a clone with submodules, or a push may take."""

_ANSWER_LIMIT = 4 * 1024 * 1024
_COMPLAINT_LIMIT = 2400


class RepositoryScript:
    """The script on one host, run in ``cwd``; ``url`` is the only remote that gets a credential."""

    def __init__(self, transport: Transport, cwd: str, url: GitUrl) -> None:
        self.transport = transport
        self._cwd = cwd
        self._url = url

    async def run(
        self,
        what: str,
        arguments: tuple[str, ...],
        *,
        env: Mapping[str, str],
        access: GitAccess | None = None,
        limit: float = NETWORK_LIMIT,
    ) -> str:
        """Have the script do something, and return what it prints, the first of it."""
        said = bytearray()

        def take(chunk: bytes) -> None:
            said.extend(chunk[: _ANSWER_LIMIT - len(said)])

        await self.read(what, arguments, env, take, access, limit=limit)
        return said.decode("utf-8", "replace")

    async def read(
        self,
        what: str,
        arguments: tuple[str, ...],
        env: Mapping[str, str],
        take: Callable[[bytes], object],
        access: GitAccess | None = None,
        *,
        limit: float = NETWORK_LIMIT,
    ) -> None:
        """Have ``take`` see what git writes. Raises GitError where it fails, and says why, or takes
        more than ``limit`` seconds."""
        command = Command(
            argv=(
                "/bin/sh",
                "-c",
                script_text("agent_files", "repository"),
                "sortie-git",
                *arguments,
            ),
            cwd=self._cwd,
            env={**env, **git_variables(self._url, access)},
        )
        complaint, ended = b"", None
        with trio.move_on_after(limit):
            async with self.transport.process(command) as process:
                async for stream, chunk in process.output():
                    if stream == 1:
                        take(chunk)
                    else:
                        complaint = (complaint + chunk)[-_COMPLAINT_LIMIT:]
                ended = await process.wait()
        if ended is None:
            raise GitError(f"could not {what}: it took more than {limit:g} s")
        if ended.status != 0:
            raise GitError(f"could not {what}: {complaint_in(complaint)}")
