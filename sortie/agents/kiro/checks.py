"""What ``sortie doctor`` asks of Kiro: whether its key is accepted."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from sortie.agents import AgentLook
from sortie.agents.kiro.credential import CredentialCheck
from sortie.agents.kiro.settings import DEFAULT_COMMAND
from sortie.agents.launch import resolve_command
from sortie.kiro.headless.arguments import KEY_NAME
from sortie.model import AgentError
from sortie.model.checks import Check, CheckResult, failed, passed

_SET = (
    f"make an API key of Kiro and set {KEY_NAME} in the environment of the daemon, and of this"
    " command; a service reads it from its EnvironmentFile"
)
_RENEW = f"look at {KEY_NAME}, and whether kiro-cli can reach its service from here"


def checks(look: AgentLook) -> Sequence[Check]:
    """Return the check of the credential; on hosts it is handed over with each turn, unasked."""

    async def ask() -> CheckResult:
        params = look.params
        if not params.env.get(KEY_NAME, "").strip():
            return failed(f"{KEY_NAME} is not set", _SET)
        if look.remote:
            return passed(f"{KEY_NAME} is set, and is handed to the hosts with each turn")
        path = params.env.get("PATH")
        argv = await resolve_command(look.command, DEFAULT_COMMAND, params.transport, path)
        try:
            await CredentialCheck(trio.current_time).confirm(argv, params)
        except AgentError as error:
            return failed(str(error), _RENEW)
        return passed(f"`kiro-cli whoami` accepts {KEY_NAME}")

    return (Check(name="credential", ask=ask),)
