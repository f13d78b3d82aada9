"""What was kept of removed workspaces, on this machine and on the hosts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple

import trio

from sortie.config.settings import Settings
from sortie.daemon.options import RunOptions
from sortie.daemon.transports import TransportPool, open_transports
from sortie.daemon.workflow_file import load_workflow
from sortie.model import LOCAL, SortieError, TransportError
from sortie.model.git_urls import parse_git_url
from sortie.transports import Transport
from sortie.workspaces import helper_env
from sortie.workspaces.environment import Secrets
from sortie.workspaces.git_values import RepositoryOptions, Rescued
from sortie.workspaces.repository import Repository
from sortie.workspaces.rescues import Rescues

if TYPE_CHECKING:
    from sortie.transports.kubernetes.kept_volumes import KeptVolumes

_LFS_FILE = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}")


class Kept(NamedTuple):
    """Work that was rescued, and the place and the repository whose mirror has it; a place is a
    host, or a volume of a pod on one."""

    host: str
    url: str
    work: Rescued


def rescued_work(options: RunOptions) -> tuple[list[Kept], list[str]]:
    """Return what is kept on all hosts, the newest first, and which hosts could not be asked."""

    async def ask() -> tuple[list[Kept], list[str]]:
        found: list[Kept] = []
        faults: list[str] = []
        async with _mirrors(options) as mirrors:
            for host in mirrors.hosts:
                try:
                    for place in await mirrors.places(host):
                        async with mirrors.at(place) as repositories:
                            for url, mirror in repositories.items():
                                rescued = await Rescues(mirror).listed(_environ(options))
                                found += [Kept(place, url, work) for work in rescued]
                except (TransportError, SortieError) as exc:
                    faults.append(f"{host}: {exc}")
        return sorted(found, key=lambda kept: -kept.work.at), faults

    return trio.run(ask)


def shown_work(options: RunOptions, kept: Kept) -> str:
    """Return the commits of rescued work with what they change."""

    async def ask() -> str:
        async with _rescues(options, kept) as rescues:
            return await rescues.show(kept.work.ref, _environ(options))

    return trio.run(ask)


def restore(options: RunOptions, kept: Kept, directory: str, branch: str) -> None:
    """Put rescued work into a repository as a branch. Raises SortieError."""
    fault: str | None = ""
    for thin in (True, False):  # a clone that is not up to date needs all of it
        with NamedTemporaryFile(prefix="sortie-rescued-") as file:
            trio.run(partial(_pack, options, kept, file.write, thin=thin))
            file.flush()
            if (fault := _git(directory, "bundle", "unbundle", file.name)) is None:
                break
    if fault is not None:
        raise SortieError(f"{directory} cannot take the work: {fault}; it needs to be a repository")
    if (fault := _git(directory, "branch", "--", branch, kept.work.commit)) is not None:
        raise SortieError(f"the branch {branch} could not be made: {fault}")
    if any(one.repository.lfs for one in load_workflow(options).settings.every()):
        with TemporaryFile() as file:
            trio.run(_pack_lfs_files, options, kept, file.write)
            if file.tell():
                file.seek(0)
                _put_lfs_files(directory, file)


async def _pack(
    options: RunOptions, kept: Kept, take: Callable[[bytes], object], *, thin: bool
) -> None:
    async with _rescues(options, kept) as rescues:
        await rescues.bundle(kept.work.ref, _environ(options), take, thin=thin)


async def _pack_lfs_files(options: RunOptions, kept: Kept, take: Callable[[bytes], object]) -> None:
    async with _rescues(options, kept) as rescues:
        await rescues.lfs_files(kept.work.ref, _environ(options), take)


def _put_lfs_files(directory: str, archive: IO[bytes]) -> None:
    """Put files of LFS where git-lfs of a person's repository finds them."""
    command = ["git", "-C", directory, "rev-parse", "--path-format=absolute", "--git-common-dir"]
    place = subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()
    with tarfile.open(fileobj=archive) as tar:
        for member in tar:
            content = tar.extractfile(member) if _LFS_FILE.fullmatch(member.name) else None
            if content is not None:
                target = os.path.join(place, "lfs", member.name)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as file:
                    shutil.copyfileobj(content, file)


def _git(directory: str, *words: str) -> str | None:
    """Run git in a person's repository; return what it complains of, None where it succeeds."""
    done = subprocess.run(["git", "-C", directory, *words], capture_output=True, check=False)
    return " ".join(done.stderr.decode("utf-8", "replace").split()) if done.returncode else None


def _environ(options: RunOptions) -> dict[str, str]:
    wanted = ("PATH", "HOME", "LANG", "TMPDIR")
    known = helper_env(options.environ, (), Secrets())
    return {name: known[name] for name in wanted if name in known}


class _Mirrors:
    """Where work may be kept, one place after the other: this machine, hosts, and volumes of pods.

    A place is named after its host, and after the workspace where that had a volume of its own.
    """

    def __init__(self, settings: Settings, transports: TransportPool) -> None:
        self._settings = settings
        self._transports = transports
        urls = (one.repository.url for one in settings.every())
        self._urls = tuple(dict.fromkeys(url for url in urls if url))
        if not self._urls:
            raise SortieError("nothing is ever rescued: repository.url is not set")
        self.hosts = settings.worker.hosts or (LOCAL,)

    async def places(self, host: str) -> tuple[str, ...]:
        """Return the places on a host. Raises HostError."""
        if self._settings.worker.kubernetes is None:
            return (host,)
        async with self._volumes(host) as volumes:
            return tuple(f"{host}/{workspace}" for workspace in await volumes.workspaces())

    @asynccontextmanager
    async def at(self, place: str) -> AsyncIterator[dict[str, Repository]]:
        """Have the repositories of a place by their URLs. Raises TransportError."""
        async with AsyncExitStack() as stack:
            if self._settings.worker.kubernetes is None:
                transport = self._transports.transport(place, self._settings)
                root = await self._root(transport)
            else:
                host, _, workspace = place.partition("/")
                volumes = await stack.enter_async_context(self._volumes(host))
                transport, root = await stack.enter_async_context(volumes.opened(workspace))
            none = RepositoryOptions()
            yield {url: Repository(transport, root, parse_git_url(url), none) for url in self._urls}

    async def _root(self, transport: Transport) -> str:
        if transport.host == LOCAL:
            return os.path.realpath(self._settings.workspace.root)
        parent, name = os.path.split(self._settings.remote_root)
        return (await transport.files.make_directory(parent, name))[0]

    def _volumes(self, host: str) -> AbstractAsyncContextManager[KeptVolumes]:
        from sortie.daemon.pod_transports import place_of
        from sortie.transports.kubernetes.kept_volumes import open_kept_volumes

        settings, pods = self._settings, self._settings.worker.kubernetes
        assert pods is not None
        return open_kept_volumes(place_of(host, settings), pods, settings.remote_root)


@asynccontextmanager
async def _mirrors(options: RunOptions) -> AsyncIterator[_Mirrors]:
    """Have the places where work may be kept. Raises SortieError where the settings name no
    repository."""
    settings = load_workflow(options).settings
    async with open_transports(lambda _fact: None, options.environ) as transports:
        yield _Mirrors(settings, transports)


@asynccontextmanager
async def _rescues(options: RunOptions, kept: Kept) -> AsyncIterator[Rescues]:
    """Have what is kept in the mirror that has some rescued work."""
    async with _mirrors(options) as mirrors, mirrors.at(kept.host) as repositories:
        yield Rescues(repositories[kept.url])
