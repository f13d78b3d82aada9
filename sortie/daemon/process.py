"""The daemon's process: what it is before the daemon runs in it, and the exit code.

No other process can inspect it, no second daemon starts on its database, it adopts the orphans of
its agents, and it carries the mark by which the next daemon finds what it could not end.
"""

from __future__ import annotations

import faulthandler
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

import trio

from sortie.config.settings import LoggingSettings
from sortie.daemon.daemon import Daemon
from sortie.daemon.database_life import ended_by_mark, open_database
from sortie.daemon.guards import Guards, expected_failures
from sortie.daemon.options import RunOptions
from sortie.daemon.run_contexts import known_secrets
from sortie.daemon.shutdown import EXIT_FAILURE
from sortie.daemon.sole_process import SoleProcess
from sortie.daemon.stop_deadline import StopDeadline
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import DaemonStopped
from sortie.resources import run_in_thread
from sortie.resources.clock import PauseClock
from sortie.resources.descriptors import raise_limit
from sortie.resources.heap import share_heap
from sortie.resources.prctl import forbid_inspection
from sortie.resources.watchdog import Watchdog
from sortie.telemetry.log import configure
from sortie.telemetry.log.sink import LogSink
from sortie.transports.local import (
    RunGroups,
    become_subreaper,
    establish_isolation,
    mark_of_database,
)
from sortie.workflow.loader import Workflow


def run_daemon(options: RunOptions) -> int:
    """Run until a signal, or idleness where asked for; return the exit code.

    Raises WorkflowError for an invalid WORKFLOW.md and SortieError where it cannot start.
    """
    forbid_inspection()  # before there is anything to be seen
    share_heap()
    workflow = load_workflow(options)
    settings = workflow.settings
    given = settings.server.auth_token
    token = given.get_secret_value() if given is not None else secrets.token_urlsafe(32)

    async def live(guards: Guards) -> int:
        return await _run_locked(options, workflow, token, guards)

    known = known_secrets(settings, options.environ, token)
    return in_daemon_process(settings.logging, options.colours, known, live)


def in_daemon_process(
    logging: LoggingSettings,
    colours: bool,
    known: Collection[str],
    live: Callable[[Guards], Awaitable[int]],
) -> int:
    """Make this process that of a daemon, live in it, and return the exit code.

    Raises the SortieError, or the shortage, that ends it.
    """
    configure(logging.level, logging.format, colours=colours, secrets=known)
    with suppress(OSError, ValueError):
        faulthandler.enable(2)  # a manager's watchdog ends a daemon by SIGABRT: where it hung
    become_subreaper()
    raise_limit()
    clock = PauseClock()
    with expected_failures(), Watchdog(lambda: clock.beats) as watchdog:
        guards = Guards(clock, watchdog, StopDeadline())
        code = trio.run(_in_time, live, guards, clock=clock)
    # All is closed; the interpreter's end would bring back the defaults, and with them an exit
    # code that says otherwise.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return code


async def _in_time(live: Callable[[Guards], Awaitable[int]], guards: Guards) -> int:
    async with guards.deadline.enforced(_leave_unclosed):
        return await live(guards)


def _leave_unclosed() -> None:
    """Leave where something does not close; what was committed is on disk."""
    LogSink()(DaemonStopped(reason="out of time while connections and the database were closed"))
    os._exit(EXIT_FAILURE)


async def _run_locked(options: RunOptions, workflow: Workflow, token: str, guards: Guards) -> int:
    settings = workflow.settings
    process = SoleProcess(settings.logging.level, options.environ, token, guards)

    async def end_former(mark: int) -> bool:
        return await ended_by_mark(mark, settings, options.environ)

    async with open_database(settings, end_former) as database:
        mark = mark_of_database(database.id)
        # Only now: the holder of the lock ends marked processes that are not its own.
        groups = RunGroups.open(f"sortie-{mark:x}")
        process.isolation = await run_in_thread(
            establish_isolation, settings.isolation, mark, groups
        )
        await Daemon(options, workflow, database.store, database.root_lock, process).run()
        return process.stopped()
