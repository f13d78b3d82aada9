"""The daemon's process: what it is before the daemon runs in it, and the exit code.

No other process can inspect it, no second daemon starts on its database, it adopts the orphans of
its agents, and it carries the mark by which the next daemon finds what it could not end.
"""

from __future__ import annotations

import faulthandler
import os
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

import trio
from msgspec import Struct
from msgspec.structs import replace

from sortie.config.settings import LoggingSettings
from sortie.daemon.common_pools import CommonPools
from sortie.daemon.daemon import Daemon
from sortie.daemon.database_life import ended_by_mark, open_database
from sortie.daemon.guards import Guards, expected_failures
from sortie.daemon.leadership import Leaderships, candidate, leading
from sortie.daemon.options import RunOptions
from sortie.daemon.secrets_in_settings import known_secrets
from sortie.daemon.shutdown import EXIT_FAILURE, EXIT_OK
from sortie.daemon.sole_process import SoleProcess
from sortie.daemon.standby import stood_by
from sortie.daemon.stop_deadline import StopDeadline
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import DaemonStopped
from sortie.resources import run_in_thread
from sortie.resources.clock import PauseClock
from sortie.resources.descriptors import raise_limit
from sortie.resources.heap import share_heap
from sortie.resources.lease import LeaseLost
from sortie.resources.prctl import forbid_inspection
from sortie.resources.watchdog import Watchdog
from sortie.telemetry import Publish
from sortie.telemetry.log import configure
from sortie.telemetry.log.sink import LogSink
from sortie.transports.local import (
    RunGroups,
    become_subreaper,
    establish_isolation,
    mark_of_database,
)
from sortie.workflow.loader import Workflow

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy
    from sortie.daemon.http_front import HttpFront


BEGIN_ANEW = -1
"""What stands for an exit code where the process goes on as a standby, as it leads no more."""

DAEMON_ID = "SORTIE_DAEMON_ID"
"""The variable with the id that a process keeps when it begins anew."""


def run_daemon(options: RunOptions) -> int:
    """Run until a signal, or idleness where asked for; return the exit code.

    Raises WorkflowError for an invalid WORKFLOW.md and SortieError where it cannot start.
    """
    forbid_inspection()  # before there is anything to be seen
    share_heap()
    daemon_id, options = options_of_former_life(options)
    workflow = load_workflow(options)
    settings = workflow.settings
    given = settings.server.auth_token
    token = given.get_secret_value() if given is not None else secrets.token_urlsafe(32)

    async def live(guards: Guards) -> int:
        return await _run_sole(options, workflow, token, guards, daemon_id)

    known = known_secrets(settings, options.environ, token)
    code = in_daemon_process(settings.logging, options.colours, known, live)
    if code == BEGIN_ANEW:
        _begin_anew()
    return code


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


def options_of_former_life(options: RunOptions) -> tuple[str | None, RunOptions]:
    """Return the id that this process had before it began anew, and the options without it: what
    the daemon starts must not have it."""
    os.environ.pop(DAEMON_ID, None)
    environ = dict(options.environ)
    return environ.pop(DAEMON_ID, None), replace(options, environ=environ)


async def _run_sole(
    options: RunOptions, workflow: Workflow, token: str, guards: Guards, daemon_id: str | None
) -> int:
    """Lead the workflow once that is possible; return the exit code, or BEGIN_ANEW."""
    log = LogSink(workflow.settings.logging.level)
    leaderships = Leaderships(daemon_id)
    code = BEGIN_ANEW
    try:
        with expected_failures():
            async with candidate(workflow.settings, leaderships) as candidacy:
                life = _Life(options, workflow, token, guards, leaderships, candidacy)
                if candidacy is None:
                    code = await _lead(life)
                else:
                    code = await _stand_by(life, candidacy, log)
    except LeaseLost as exc:
        log(DaemonStopped(reason=str(exc)))
        if leaderships.is_overdue:  # what was stopped for longer than its lease does not come back
            code = EXIT_FAILURE
    finally:
        with trio.CancelScope(shield=True):
            await leaderships.aclose(coming_back=code == BEGIN_ANEW)
    if code == BEGIN_ANEW:
        os.environ[DAEMON_ID] = leaderships.daemon
    return code


class _Life(Struct, frozen=True):
    """A life of this process: what it was asked to do, and what it does that with."""

    options: RunOptions
    workflow: Workflow
    token: str
    guards: Guards
    leaderships: Leaderships
    candidacy: Candidacy | None


async def _stand_by(life: _Life, candidacy: Candidacy, log: Publish) -> int:
    """Answer for the leader of the workflow, and lead it once that is possible."""
    from sortie.daemon.http_front import opened_front, standby_endpoint

    options, settings = life.options, life.workflow.settings
    known = known_secrets(settings, options.environ, life.token)
    path = str(life.workflow.path)
    async with opened_front(settings, life.token, candidacy, life.leaderships, known, log) as front:
        url = None if front is None else front.url
        async with standby_endpoint(settings, path, url, life.token, log):
            if not await stood_by(candidacy, options.environ, log):
                return EXIT_OK
            return await _lead(life, front)


async def _lead(life: _Life, front: HttpFront | None = None) -> int:
    options, workflow, candidacy = life.options, life.workflow, life.candidacy
    settings = workflow.settings
    process = SoleProcess(settings.logging.level, options.environ, life.token, life.guards, front)

    async def end_former(mark: int) -> bool:
        return await ended_by_mark(mark, settings, options.environ)

    common = CommonPools(life.leaderships, None, process.sinks[0], alone=True)
    async with (
        leading(candidacy, process.sinks[0], process.lose_lease),
        open_database(settings, end_former) as database,
        common.at_work(),
    ):
        mark = mark_of_database(database.id)
        # Only now: the holder of the lock ends marked processes that are not its own.
        groups = RunGroups.open(f"sortie-{mark:x}")
        isolation = await run_in_thread(establish_isolation, settings.isolation, mark, groups)
        process.isolation = isolation
        if candidacy is not None:
            cgroup = None if groups is None else groups.directory
            life.leaderships.watchdog.find_runs_by(cgroup=cgroup, mark=isolation.mark)
        store, root_lock = database.store, database.root_lock
        pool = common.of(settings)
        if pool is not None and candidacy is not None and candidacy.lease is not None:
            process.share(pool, candidacy.lease)
        try:
            await Daemon(options, workflow, store, root_lock, process, candidacy).run()
        finally:
            process.leave(ended=candidacy is None or not candidacy.is_lost)
    return process.stopped() if candidacy is None or process.asked else BEGIN_ANEW


def _begin_anew() -> NoReturn:
    """Begin this program anew in the same process, as a daemon that stands by."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)  # what is ignored would be ignored in it, too
    os.execv(sys.executable, [sys.executable, "-m", "sortie", *sys.argv[1:]])
