"""How much disk workspaces take, measured from time to time where the settings limit it."""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

from sortie.config.settings import Settings
from sortie.daemon.run_contexts import RunContexts
from sortie.model import LOCAL, SortieError
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry.log.structlog_alone import structlog
from sortie.transports import Script
from sortie.worker import RunContext
from sortie.workspaces.rescues import Rescues

MEASURE_PERIOD = 60.0
"""Seconds from the end of one look to the beginning of the next."""

FORGET_PERIOD = 3600.0
"""Seconds from one look for what was rescued too long ago to the next."""

_LOOK_LIMIT = 600.0
_ANSWER_LIMIT = 4 * 1024 * 1024
_LOOK = """
cd -P -- "$1" 2>/dev/null || exit 0
nice du -sk -- */ 2>/dev/null || :
"""

log = structlog.get_logger()


async def measure_workspaces(contexts: RunContexts, tell: Callable[[Event], None]) -> None:
    """Measure the workspaces of all hosts again and again, for ever."""
    while True:
        settings = contexts.local.settings
        if settings.workspace.max_bytes or settings.workspace.max_bytes_each:
            for host in settings.worker.hosts or (LOCAL,):
                context = contexts.for_host(host)
                try:
                    with trio.move_on_after(_LOOK_LIMIT):
                        tell(ev.WorkspacesMeasured(host, await _sizes(context)))
                except SortieError as exc:  # the host's trouble is told by what runs there
                    log.debug("workspaces.not_measured", host=host, error=str(exc))
        await trio.sleep(MEASURE_PERIOD)


async def _sizes(context: RunContext) -> dict[str, int]:
    """Return the bytes of each workspace by its directory's name. Raises SortieError."""
    root = await _root(context)
    script = Script(
        purpose="measure the workspaces",
        text=_LOOK,
        arguments=(root,),
        cwd="/",
        env=_environ(context),
        limit=_ANSWER_LIMIT,
    )
    answer = (await context.transport.run_script(script)).decode("utf-8", "replace")
    found = (line.partition("\t") for line in answer.splitlines())
    return {
        name.rstrip("/"): int(kilobytes) * 1024
        for kilobytes, _, name in found
        if kilobytes.isdigit()
    }


async def forget_rescued(contexts: RunContexts, wall: Callable[[], float]) -> None:
    """Forget what was rescued too long ago, once an hour, for ever."""
    while True:
        await trio.sleep(FORGET_PERIOD)
        settings = contexts.local.settings
        before = wall() - settings.workspace.keep_rescued_days * 86_400.0
        if settings.worker.kubernetes is not None:
            await _forget_volumes(settings, before)
            continue
        places = [(h, r) for h in settings.worker.hosts or (LOCAL,) for r in contexts.by_rule]
        for host, rule in places:
            context = contexts.for_host(host, rule)
            if context.remote is None:
                continue
            try:
                repository = context.remote.at(await _root(context))
                forgotten = await Rescues(repository).forget(before, _environ(context))
            except SortieError as exc:
                log.debug("rescues.not_forgotten", host=host, error=str(exc))
                continue
            if forgotten:
                log.info("rescues.forgotten", host=host, refs=len(forgotten))


async def _forget_volumes(settings: Settings, before: float) -> None:
    """Delete the volumes of pods that were kept too long ago."""
    from sortie.daemon.pod_transports import place_of
    from sortie.transports.kubernetes.kept_volumes import open_kept_volumes

    pods = settings.worker.kubernetes
    assert pods is not None
    for host in settings.worker.hosts:
        place = place_of(host, settings)
        try:
            async with open_kept_volumes(place, pods, settings.remote_root) as volumes:
                count = await volumes.forget(before)
        except SortieError as exc:
            log.debug("rescues.not_forgotten", host=host, error=str(exc))
            continue
        if count:
            log.info("rescues.forgotten", host=host, volumes=count)


async def _root(context: RunContext) -> str:
    """Return the real directory of the workspaces. Raises SortieError."""
    if context.transport.host == LOCAL:
        return os.path.realpath(context.settings.workspace.root)
    parent, name = os.path.split(context.settings.remote_root)
    root, _ = await context.transport.files.make_directory(parent, name)
    return root


def _environ(context: RunContext) -> dict[str, str]:
    here = context.transport.host == LOCAL
    return {"PATH": context.environ.get("PATH", "/usr/bin:/bin")} if here else {}
