"""What was kept of removed workspaces, on this machine and on the hosts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, NamedTuple

import trio

from sortie.daemon.options import RunOptions
from sortie.daemon.transports import open_transports
from sortie.daemon.workflow_file import load_workflow
from sortie.model import LOCAL, SortieError, TransportError
from sortie.model.git_urls import parse_git_url
from sortie.workspaces import helper_env
from sortie.workspaces.environment import Secrets
from sortie.workspaces.git_values import RepositoryOptions, Rescued
from sortie.workspaces.repository import Repository
from sortie.workspaces.rescues import Rescues

_LFS_FILE = re.compile(r"objects/[0-9a-f]{2}/[0-9a-f]{2}/[0-9a-f]{64}")


class Kept(NamedTuple):
    """Work that was rescued, and the host and the repository whose mirror has it."""

    host: str
    url: str
    work: Rescued

    @property
    def place(self) -> tuple[str, str]:
        """What tells the mirror from others."""
        return self.host, self.url


def rescued_work(options: RunOptions) -> tuple[list[Kept], list[str]]:
    """Return what is kept on all hosts, the newest first, and which hosts could not be asked."""

    async def ask() -> tuple[list[Kept], list[str]]:
        found: list[Kept] = []
        faults: list[str] = []
        async with _mirrors(options) as mirrors:
            for (host, url), mirror in mirrors.items():
                try:
                    rescued = await Rescues(mirror).listed(_environ(options))
                except (TransportError, SortieError) as exc:
                    faults.append(f"{host}: {exc}")
                    continue
                found += [Kept(host, url, work) for work in rescued]
        return sorted(found, key=lambda kept: -kept.work.at), faults

    return trio.run(ask)


def shown_work(options: RunOptions, kept: Kept) -> str:
    """Return the commits of rescued work with what they change."""

    async def ask() -> str:
        async with _mirrors(options) as mirrors:
            return await Rescues(mirrors[kept.place]).show(kept.work.ref, _environ(options))

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
    async with _mirrors(options) as mirrors:
        rescues = Rescues(mirrors[kept.place])
        await rescues.bundle(kept.work.ref, _environ(options), take, thin=thin)


async def _pack_lfs_files(options: RunOptions, kept: Kept, take: Callable[[bytes], object]) -> None:
    async with _mirrors(options) as mirrors:
        await Rescues(mirrors[kept.place]).lfs_files(kept.work.ref, _environ(options), take)


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


@asynccontextmanager
async def _mirrors(options: RunOptions) -> AsyncIterator[dict[tuple[str, str], Repository]]:
    """Have the repositories on each host, by host and URL. Raises SortieError where the settings
    name none."""
    settings, none = load_workflow(options).settings, RepositoryOptions()
    urls = dict.fromkeys(one.repository.url for one in settings.every() if one.repository.url)
    if not urls:
        raise SortieError("nothing is ever rescued: repository.url is not set")
    hosts = settings.worker.hosts or (LOCAL,)
    async with open_transports(lambda _fact: None, options.environ) as transports:
        found = {}
        for host in hosts:
            root = os.path.realpath(settings.workspace.root)
            transport = transports.transport(host, settings)
            if host != LOCAL:
                root, _ = await transport.files.make_directory(
                    os.path.dirname(settings.remote_root), os.path.basename(settings.remote_root)
                )
            for url in urls:
                found[host, url] = Repository(transport, root, parse_git_url(url), none)
        yield found
