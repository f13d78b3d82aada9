"""The daemon's process: what it is before the daemon runs in it, and the exit code.

No other process can inspect it, no second daemon starts on its database, it adopts the orphans of
its agents, and it carries the mark by which the next daemon finds what it could not end.
"""

from __future__ import annotations

import faulthandler
import os
import secrets
import signal
from contextlib import suppress

import trio

from sortie.daemon.daemon import Daemon
from sortie.daemon.database_life import begin_life, ended_by_path, refuse_lost_rows
from sortie.daemon.guards import Guards, expected_failures
from sortie.daemon.locks import database_lock
from sortie.daemon.options import RunOptions
from sortie.daemon.root_lock import RootLock
from sortie.daemon.run_contexts import known_secrets
from sortie.daemon.shutdown import EXIT_FAILURE
from sortie.daemon.stop_deadline import StopDeadline
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import DaemonStopped
from sortie.model import SortieError
from sortie.resources import run_in_thread
from sortie.resources.clock import PauseClock
from sortie.resources.descriptors import raise_limit
from sortie.resources.heap import share_heap
from sortie.resources.prctl import forbid_inspection
from sortie.resources.watchdog import Watchdog
from sortie.store.sqlite import open_store
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
    configure(
        settings.logging.level,
        settings.logging.format,
        colours=options.colours,
        secrets=known_secrets(settings, options.environ, token),
    )
    with suppress(OSError, ValueError):
        faulthandler.enable(2)  # a manager's watchdog ends a daemon by SIGABRT: where it hung
    become_subreaper()
    raise_limit()
    clock = PauseClock()
    with expected_failures(), Watchdog(lambda: clock.beats) as watchdog:
        guards = Guards(clock, watchdog, StopDeadline())
        code = trio.run(_run_in_time, options, workflow, token, guards, clock=clock)
    # All is closed; the interpreter's end would bring back the defaults, and with them an exit
    # code that says otherwise.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return code


async def _run_in_time(options: RunOptions, workflow: Workflow, token: str, guards: Guards) -> int:
    async with guards.deadline.enforced(_leave_unclosed):
        return await _run_locked(options, workflow, token, guards)


def _leave_unclosed() -> None:
    """Leave where something does not close; what was committed is on disk."""
    LogSink()(DaemonStopped(reason="out of time while connections and the database were closed"))
    os._exit(EXIT_FAILURE)


async def _run_locked(options: RunOptions, workflow: Workflow, token: str, guards: Guards) -> int:
    settings = workflow.settings
    with database_lock(settings.db_path) as lock, RootLock(settings.workspace.root) as root_lock:
        try:
            lock.ensure()
        except OSError as exc:
            raise SortieError(
                f"cannot lock the database {settings.db_path}: {exc.strerror}; make its directory"
                " writable, or set db_path"
            ) from exc
        refuse_lost_rows(lock, settings.db_path)
        async with open_store(settings.db_path) as store:
            lock.ensure()  # a new database is only now there to be locked itself
            life = await begin_life(store, lock, settings.db_path)
            if life.path_named and await ended_by_path(settings, options.environ):
                await store.forget_path_name()
            mark = mark_of_database(life.id)
            # Only now: the holder of the lock ends marked processes that are not its own.
            groups = RunGroups.open(f"sortie-{mark:x}")
            isolation = await run_in_thread(establish_isolation, settings.isolation, mark, groups)
            return await Daemon(options, workflow, store, root_lock, token).run(isolation, guards)
