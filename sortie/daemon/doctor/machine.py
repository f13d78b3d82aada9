"""The checks of this machine: git, disks, limits, isolation, the port, and other daemons."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from sortie.config.settings import Isolation, Settings
from sortie.daemon.disk_space import places_of, room_at
from sortie.daemon.doctor.limits import DaemonLimits
from sortie.daemon.doctor.programs import Answered, answer_of
from sortie.daemon.endpoint_file import is_at_work, read_endpoint
from sortie.daemon.locks import database_lock_path, holder_of
from sortie.daemon.root_lock import root_lock_path
from sortie.model import SortieError
from sortie.model.checks import Check, CheckResult, failed, passed, warned
from sortie.resources import run_in_thread
from sortie.transports import Transport
from sortie.transports.local import become_subreaper, try_isolation
from sortie.web.listener import ListenAddress, listen

NO_ROOM, LITTLE_ROOM = 16 << 20, 1 << 30
"""Free bytes of a disk below which a check fails, and below which it warns."""

GIGABYTE = 1 << 30
_ISOLATION_REMEDY = (
    "lift what forbids it; without it what a run leaves behind is searched for, from which a"
    " program can hide (see 'How processes are ended' in docs/reliability.md)"
)
_COMMITTER = (
    "git config --global user.name NAME; git config --global user.email ADDRESS, as the"
    " daemon's user"
)


def machine_checks(
    settings: Settings, transport: Transport, environ: Mapping[str, str]
) -> Sequence[Check]:
    """Return the checks of what every daemon needs here."""
    local = not settings.worker.hosts

    async def git() -> CheckResult:
        return await git_result(transport, environ)

    async def disk() -> CheckResult:
        return await run_in_thread(disk_result, places_of(settings))

    async def daemon() -> CheckResult:
        return await run_in_thread(daemon_result, settings)

    async def port() -> CheckResult:
        return await port_result(settings)

    async def isolation() -> CheckResult:
        return await run_in_thread(isolation_result, settings)

    limits = DaemonLimits(settings)
    return (
        Check(name="daemon", ask=daemon),
        *((Check(name="git", ask=git),) if local else ()),
        Check(name="disk", ask=disk),
        Check(name="files", ask=limits.files),
        Check(name="processes", ask=limits.processes),
        *((Check(name="isolation", ask=isolation),) if local else ()),
        *((Check(name="cgroups", ask=limits.cgroups),) if local else ()),
        Check(name="port", ask=port, needs=("daemon",)),
    )


async def git_result(transport: Transport, environ: Mapping[str, str]) -> CheckResult:
    """Tell whether hooks and agents have a git that can commit."""
    version = await answer_of(transport, environ, "git", "--version")
    if version is None:
        return warned(
            "there is no git; hooks that clone, and agents that commit, fail without it",
            "install git, for example: apt-get install git",
        )
    missing = [
        name
        for name in ("user.name", "user.email")
        if not _said(await answer_of(transport, environ, "git", "config", "--get", name))
        and not environ.get(f"GIT_COMMITTER_{name[5:].upper()}")
    ]
    if missing:
        return warned(
            f"{version.said} has no {' and no '.join(missing)}: a commit here fails"
            " where the repository does not say who that is",
            _COMMITTER,
        )
    return passed(f"{version.said} can commit")


def _said(answer: Answered | None) -> str:
    return answer.said if answer is not None and answer.status == 0 else ""


def disk_result(places: Mapping[str, str]) -> CheckResult:
    """Tell how much room there is for the database and the workspaces."""
    rooms = []
    for place, path in places.items():
        try:
            free, size = room_at(path)
        except OSError as error:
            return failed(f"cannot look at the disk of {path}: {error.strerror}", "mend its mount")
        room = (
            f"{free / GIGABYTE:.1f} GB of {size / GIGABYTE:.0f} GB free for the {place} in {path}"
        )
        if free < NO_ROOM:
            return failed(room, "free some space, or name another directory")
        if _has_no_file_left(path):
            return failed(
                f"no file can be made any more for the {place} in {path}: its disk has no inode"
                " left",
                "remove files there, or name another directory",
            )
        if free < LITTLE_ROOM or free < size / 20:
            return warned(room, "free some space; a run may need more than that")
        rooms.append(room)
    return passed("; ".join(rooms))


def _has_no_file_left(path: str) -> bool:
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    found = os.statvfs(path)
    return found.f_files > 0 and found.f_favail == 0


def daemon_result(settings: Settings) -> CheckResult:
    """Tell whether a daemon is at work, or another one is in the way."""
    holder = holder_of(database_lock_path(settings.db_path))
    if holder is not None:
        return passed(f"a daemon is at work ({holder})")
    if not settings.worker.hosts:
        root = holder_of(root_lock_path(settings.workspace.root))
        if root is not None:
            return failed(
                f"the workspaces in {settings.workspace.root} are another daemon's ({root})",
                "stop that one, or name a directory of its own with workspace.root",
            )
    return passed("no daemon is at work; 'sortie run' starts one")


async def port_result(settings: Settings) -> CheckResult:
    """Tell whether a daemon could listen where the settings say, or does."""
    server = settings.server
    if server.port == 0:
        return warned(
            "server.port is 0: no HTTP, so no dashboard, no metrics, and no 'sortie status'",
            "leave server.port out, or name a port",
        )
    if holder_of(database_lock_path(settings.db_path)) is not None:
        return _served(settings)
    endpoint = ListenAddress(
        host=server.host,
        port=server.port,
        asked=server.port_given,
        token_given=server.auth_token is not None,
    )
    listener = await listen(endpoint)
    listener.close()
    if listener.wanted_port is not None:
        return warned(
            f"port {listener.wanted_port} is taken; a daemon would listen on {listener.port}",
            "stop what uses it, or name another with server.port",
        )
    return passed(f"a daemon can listen on {listener.url}")


def _served(settings: Settings) -> CheckResult:
    try:
        url = read_endpoint(settings.db_path).url
    except SortieError as error:
        return warned(
            str(error), "run this as the daemon's user; commands find the daemon by that file"
        )
    return passed(f"the daemon listens on {url}" if url else "the daemon has no HTTP server")


def isolation_result(settings: Settings) -> CheckResult:
    """Tell what the daemon at work has found out, which as a service may be allowed less, or more.

    Where none is, start a program in a PID namespace, as one that is started from here does;
    blocks.
    """
    with suppress(SortieError):
        daemon = read_endpoint(settings.db_path)
        if daemon.isolation is not None and is_at_work(settings.db_path, daemon):
            said = f"the daemon says that {daemon.isolation}"
            return warned(said, _ISOLATION_REMEDY) if daemon.isolation_refused else passed(said)
    wanted = settings.isolation
    if wanted is Isolation.NONE:
        return passed("isolation is none: programs of runs get no PID namespaces")
    if not become_subreaper():
        return _no_isolation(wanted, "this system has no PID namespaces, or no child subreapers")
    try:
        return passed(try_isolation())
    except OSError as exc:
        return _no_isolation(wanted, str(exc.strerror or exc))


def _no_isolation(wanted: Isolation, why: str) -> CheckResult:
    sentence = f"a daemon started from here cannot give programs PID namespaces: {why}"
    if wanted is Isolation.PID_NAMESPACE:
        return failed(sentence, f"{_ISOLATION_REMEDY}; or set isolation to auto")
    return warned(sentence, _ISOLATION_REMEDY)
