"""The repositories that the settings name: each with its forge, its credential, and its mirror on
each host."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic import SecretStr

from sortie import forges
from sortie.config.forge_kinds import NO_FORGE, forge_kind
from sortie.config.settings import Settings
from sortie.forges import Forge, ForgeContext
from sortie.model import TrackerError, TrackerErrorKind
from sortie.model.git_urls import GitUrl, parse_git_url
from sortie.model.secrets import unchanged
from sortie.orchestrator.time_limits import progress
from sortie.transports import Transport
from sortie.worker import RemoteRepository
from sortie.workspaces.git_values import GitAccess, RepositoryOptions
from sortie.workspaces.repository import MirrorState, Repository

_SSH = "ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=15 -oServerAliveCountMax=3"


MirrorStates = dict[tuple[str, str], MirrorState]
"""The state of each mirror, by host and path: repositories of one URL share a mirror."""


class OpenRepository:
    """Knows a repository on each host, for the life of a daemon, as the first settings that name it
    do; ``hide`` is told each token before anybody gets it."""

    def __init__(
        self,
        settings: Settings,
        url: GitUrl,
        forge: Forge | None,
        hide: Callable[[str], object],
        mirrors: MirrorStates,
    ) -> None:
        self.settings = settings
        self._url = url
        self._hide = hide
        self._mirrors = mirrors
        self.forge = forge
        self._known: dict[tuple[str, str], Repository] = {}

    async def access(self) -> GitAccess:
        """Return how git reaches the remote now. Raises TrackerError."""
        settings = self.settings.repository
        if self._url.scheme == "ssh":
            checking = self.settings.worker.ssh_strict_host_key_checking
            return GitAccess(ssh_command=_ssh_command(checking, settings.identity_file))
        if not self._url.is_http:
            return GitAccess()
        if self.forge is not None and (found := await self.forge.git_credential()) is not None:
            self._hide(found.password)
            return GitAccess(username=found.username, password=found.password)
        token = token_of(self.settings)
        return GitAccess(username="git", password=token) if token else GitAccess()

    def on_host(self, host: str, transport: Transport) -> RemoteRepository:
        """Return the repository as a host has it."""

        def at(root: str) -> Repository:
            known = self._known.get((host, root))
            if known is None:
                known = self._known[host, root] = self._made(transport, root)
                known.state = self._mirrors.setdefault((host, known.mirror), known.state)
            known.git.transport = transport  # a reload may have made another
            return known

        return RemoteRepository(url=self._url, at=at, access=self.access, forge=self.forge)

    def _made(self, transport: Transport, root: str) -> Repository:
        block = self.settings.repository
        options = RepositoryOptions(
            base=block.base,
            submodules=block.submodules,
            lfs=block.lfs,
            agent_pushes=block.agent_pushes,
            author_name=block.author_name,
            author_email=block.author_email,
        )
        return Repository(transport, root, self._url, options)


def _ssh_command(checking: str, identity: str | None) -> str:
    """Return the command line of ssh for git, which hands it to a shell of the run's host."""
    command = f"{_SSH} -oStrictHostKeyChecking={checking}"
    if identity is None:
        return command
    # ssh itself would take the home directory from the list of users.
    in_home = identity.startswith("~/")
    path = f'"$HOME"/{shlex.quote(identity[2:])}' if in_home else shlex.quote(identity)
    return f"{command} -oIdentitiesOnly=yes -i {path}"


def token_of(settings: Settings) -> str:
    """Return the token for repository and forge, "" where there is none."""
    found = settings.repository.credential
    if found == "tracker":
        found = settings.tracker.api_key
    return found.get_secret_value().strip() if isinstance(found, SecretStr) else ""


class Repositories:
    """The repositories of the top level and of all rules; two that say the same are one."""

    def __init__(self) -> None:
        self._open: dict[object, OpenRepository] = {}

    def add(self, settings: Settings, repository: OpenRepository) -> None:
        """Know the repository of these settings."""
        self._open[_identity(settings)] = repository

    def all(self) -> tuple[OpenRepository, ...]:
        """Return every repository."""
        return tuple(self._open.values())

    def of(self, settings: Settings) -> OpenRepository | None:
        """Return the repository of the settings, None where they name none.

        Raises TrackerError for one that was not there when the daemon started.
        """
        if settings.repository.url is None:
            return None
        found = self._open.get(_identity(settings))
        if found is None:
            where = f"of rule {settings.rule} " if settings.rule else ""
            message = f"the repository {where}is another one now, which needs a restart"
            raise TrackerError(TrackerErrorKind.INVALID, message)
        return found


def _identity(settings: Settings) -> object:
    """Return what tells one repository, and how it is used, from another."""
    forge = settings.forge
    return settings.repository, forge.kind, forge.endpoint


@asynccontextmanager
async def open_repositories(
    settings: Settings, hide: Callable[[str], object] = unchanged
) -> AsyncIterator[Repositories]:
    """Hold the forges of all repositories open. Raises TrackerError where one cannot be used."""
    repositories, mirrors = Repositories(), MirrorStates()
    async with AsyncExitStack() as stack:
        for one in settings.every():
            try:
                repositories.of(one)
            except TrackerError:
                forge = await _open_forge(one, stack)
                url = parse_git_url(one.repository.url or "")
                repositories.add(one, OpenRepository(one, url, forge, hide, mirrors))
        yield repositories


async def _open_forge(settings: Settings, stack: AsyncExitStack) -> Forge | None:
    kind = forge_kind(settings)
    if kind == NO_FORGE:
        return None
    try:
        adapter = forges.ADAPTERS.load(kind)
    except LookupError as exc:
        raise TrackerError(TrackerErrorKind.INVALID, f"forge.kind: {exc}") from None
    url = parse_git_url(settings.repository.url or "")
    return await stack.enter_async_context(adapter.open(_context(settings, url, kind)))


def _context(settings: Settings, url: GitUrl, kind: str) -> ForgeContext:
    is_trackers = settings.repository.credential == "tracker"
    endpoint, app = settings.forge.endpoint, None
    if is_trackers and kind == settings.tracker.kind:
        endpoint = endpoint or settings.tracker.endpoint
        block: Any = settings.block(settings.tracker_block)
        if getattr(block, "app_id", None) is not None:
            app = (block.app_id, block.installation_id)
    return ForgeContext(
        url=url, token=token_of(settings), endpoint=endpoint, app=app, progress=progress
    )
