"""Whether the settings of now let a turn go on that an earlier daemon has begun."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sortie.config.settings import Settings
from sortie.store import UnfinishedRun
from sortie.worker import RunContext


def agent_command(settings: Settings, default: str) -> str:
    """Return what settings say of an agent's program and of what it works in, in one text: with
    another one no turn goes on that was begun."""
    repository = settings.repository.url, settings.remote_root
    return repr((settings.agent.command or default, *map(str, repository)))


def goes_on(
    run: UnfinishedRun,
    rule: str,
    by_rule: Mapping[str, RunContext],
    for_host: Callable[[str, str], RunContext],
) -> bool:
    """Tell whether a turn goes on: its rule and its host have their names, and its agent is the
    same, in no sandbox. ``by_rule`` and ``for_host`` are those of RunContexts."""
    here, turn = by_rule.get(rule), run.turn
    if here is None or turn is None or run.host not in here.settings.worker.hosts:
        return False
    is_same = (turn.agent, turn.command) == (here.settings.agent.kind, here.agent_command)
    return is_same and for_host(run.host, rule).turns_outlive_daemon
