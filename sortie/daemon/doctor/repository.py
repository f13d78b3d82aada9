"""The checks of the repository: whether git reaches it from here, and its forge."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping

from sortie.config.settings import Settings
from sortie.daemon.doctor.checkup import Diagnosis, Tell, remedy_of, run_checks
from sortie.daemon.repositories import Repositories, open_repositories
from sortie.model import LOCAL, RunId, TrackerError
from sortie.model.checks import Check, CheckResult, failed, passed
from sortie.transports import Transport
from sortie.workspaces import Secrets, hook_env
from sortie.workspaces.environment import RunVariables

_NO_RUN = RunId("")


async def look_at_repository(
    settings: Settings, transport: Transport, environ: Mapping[str, str], tell: Tell
) -> None:
    """Ask the remote and the forge, and change nothing there."""
    try:
        async with open_repositories(settings) as repositories:
            if repositories is None:
                return
            checks = (_remote(repositories, transport, environ),)
            await run_checks("repository", checks, tell)
            if repositories.forge is not None:
                await run_checks("forge", repositories.forge.checks(), tell)
    except TrackerError as error:
        sentence = f"the forge cannot be used: {error}"
        tell(Diagnosis(name="forge", result=failed(sentence, remedy_of(error))))


def _remote(repositories: Repositories, transport: Transport, environ: Mapping[str, str]) -> Check:
    async def ask() -> CheckResult:
        access = await repositories.access()
        with tempfile.TemporaryDirectory(prefix="sortie-doctor-") as place:
            repository = repositories.on_host(LOCAL, transport).at(os.path.realpath(place))
            variables = RunVariables(
                issue_id="", issue_identifier="", workspace=place, attempt=0, run_id=_NO_RUN
            )
            env = hook_env(environ, (), variables, Secrets())
            base = await repository.default_branch(access, env)
        return passed(f"git reaches {repository.url.text}, whose default branch is {base}")

    remedy = "look at repository.url and repository.credential, and at what git says of it by hand"
    return Check(name="remote", ask=ask, remedy=remedy)
