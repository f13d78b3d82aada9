"""The checks of the repository: whether git is there and reaches it, here or on a host; its forge.

Rule: git runs in ``/`` and writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from sortie.config.settings import Settings
from sortie.daemon.doctor.checkup import Diagnosis, Tell, run_checks
from sortie.daemon.doctor.programs import answer_of
from sortie.daemon.repositories import OpenRepository, Repositories, open_repositories
from sortie.model import LOCAL, RunId, TrackerError
from sortie.model.checks import Check, CheckResult, failed, passed
from sortie.transports import Transport
from sortie.workspaces import Secrets, hook_env, remote_hook_env
from sortie.workspaces.environment import RunVariables

OLDEST_GIT = (2, 31)
"""The first version that can be told a credential without writing it anywhere."""

REMOTE_REMEDY = (
    "look at repository.url, repository.base and repository.credential, and try git ls-remote there"
    " by hand"
)

_FORGE_REMEDY = "look at repository.url, repository.credential and forge"

_NO_RUN = RunVariables(issue_id="", issue_identifier="", workspace="/", attempt=0, run_id=RunId(""))
_VERSION = re.compile(r"(\d+)\.(\d+)")


@asynccontextmanager
async def usable_repositories(
    settings: Settings, tell: Tell
) -> AsyncIterator[tuple[OpenRepository, ...]]:
    """Hold the forges open; () without a repository, and where a forge cannot be used, which is
    told."""
    async with AsyncExitStack() as stack:
        repositories = Repositories()
        try:
            repositories = await stack.enter_async_context(open_repositories(settings))
        except TrackerError as error:
            sentence = f"the forge cannot be used: {error}"
            tell(Diagnosis(name="forge", result=failed(sentence, _FORGE_REMEDY)))
        yield repositories.all()


class RepositoryLook(Struct, frozen=True, kw_only=True):
    """What is asked of a machine that fetches the repository; ``environ`` is the daemon's, as far
    as it is no secret."""

    settings: Settings
    repository: OpenRepository
    environ: Mapping[str, str]

    async def git(self, transport: Transport) -> CheckResult:
        """Tell whether there is a git that can do what runs need."""
        environ = self._environ(transport)
        found = await answer_of(transport, environ, "git", "--version")
        oldest = ".".join(map(str, OLDEST_GIT))
        if found is None or found.status != 0:
            return failed("there is no git, which fetches the repository", f"install git {oldest}")
        said = found.said.partition("\n")[0]
        version = _VERSION.search(said)
        if version is not None and tuple(map(int, version.groups())) < OLDEST_GIT:
            return failed(f"{said} is too old", f"install git {oldest} or a newer one")
        if not self.settings.repository.lfs:
            return passed(said)
        lfs = await answer_of(transport, environ, "git-lfs", "version")
        if lfs is None or lfs.status != 0:
            return failed(f"{said}, and no git-lfs, which repository.lfs needs", "install git-lfs")
        return passed(f"{said}, {lfs.said.partition(' ')[0]}")

    async def remote(self, transport: Transport) -> CheckResult:
        """Tell whether the remote answers with the credential, and has the base."""
        repository = self.repository.on_host(transport.host, transport).at("/")
        access = await self.repository.access()
        base = await repository.remote_base(access, self._environ(transport))
        return passed(f"git reaches {repository.url.text}, where work begins at {base}")

    async def look(self, transport: Transport, tell: Tell) -> None:
        """Ask this machine both."""
        checks = (
            Check(name="git", ask=lambda: self.git(transport)),
            Check(
                name="remote",
                ask=lambda: self.remote(transport),
                needs=("git",),
                remedy=REMOTE_REMEDY,
            ),
        )
        await run_checks("repository", checks, tell)

    def _environ(self, transport: Transport) -> Mapping[str, str]:
        """Return what git gets in a run."""
        names = self.settings.hooks.pass_env
        made = hook_env if transport.host == LOCAL else remote_hook_env
        return made(self.environ, names, _NO_RUN, Secrets())
