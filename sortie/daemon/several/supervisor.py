"""Keeps one of several workflows going: begins it, and begins it again after what broke it.

Rule 1: whatever is wrong with a workflow ends it alone. All of its runs have ended before it is
begun again.
Rule 2: one that is broken is tried again when its file changes and when the process is asked to
reload; unless its file is not valid, also after a pause that doubles each time.
"""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import trio

from sortie.config.settings import Settings
from sortie.daemon.daemon import Daemon
from sortie.daemon.database_life import OpenDatabase, open_database
from sortie.daemon.guards import expected_failures
from sortie.daemon.http_front import standby_endpoint
from sortie.daemon.leadership import candidate, known_to_stand_by, leading, stand_by
from sortie.daemon.options import RunOptions
from sortie.daemon.secrets_in_settings import known_secrets
from sortie.daemon.several.conflicts import conflict
from sortie.daemon.several.member_process import MemberProcess, SharedParts
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import OrphansReaped
from sortie.model import SortieError, TransportError, WorkflowError
from sortie.resources import Shortage, run_in_thread
from sortie.telemetry import facts
from sortie.telemetry.log import WORKFLOW, LogSink
from sortie.workflow.loader import Workflow
from sortie.workflow.watcher import watch

if TYPE_CHECKING:
    from sortie.daemon.candidacy import Candidacy

FIRST_RETRY, LONGEST_RETRY = 10.0, 300.0
"""Seconds until a broken workflow is tried again."""

STEADY = 600.0
"""Seconds of work after which an earlier crash does not count any more."""


class WorkflowSupervisor:
    """One workflow by its name. ``errors`` say why it is ``broken``, and ``settings`` are those
    that its file held last, if it was valid; ``others`` returns the same of the other workflows.
    ``candidacy`` is there where other daemons may lead it."""

    def __init__(
        self,
        name: str,
        options: RunOptions,
        process_name: str,
        others: Callable[[str], Mapping[str, Settings]],
    ) -> None:
        self.name = name
        self.options = options
        self.settings: Settings | None = None
        self.status: Literal["starting", "standby", "working", "broken", "ended"] = "starting"
        self.errors: tuple[str, ...] = ()
        self.member: MemberProcess | None = None
        self.candidacy: Candidacy | None = None
        self.settled = trio.Event()
        self._process_name = process_name
        self._others = others
        self._log = LogSink()
        self._again = trio.Event()
        self._failures = 0
        self._files: tuple[Path, ...] = (options.workflow,)

    def reload(self) -> None:
        """Read the file again; a workflow that is broken is tried."""
        if self.member is not None and self.member.reloader is not None:
            self.member.reloader.force()
        self._again.set()

    async def run(self, parts: SharedParts) -> None:
        """Keep the workflow going until the process ends."""
        WORKFLOW.set(self.name)
        while not parts.shutdown.asked:
            self._again = trio.Event()
            began = trio.current_time()
            pause: float | None = None
            try:
                workflow = await run_in_thread(load_workflow, self.options)
                self._claim(workflow.settings)
                await self._live(workflow, parts)
                self.status = "starting"
                continue  # it was handed over, or its file has changed meanwhile
            except WorkflowError as exc:
                self._files = (self.options.workflow, *exc.files)
                self.errors = tuple(str(p) for p in exc.problems if p.severity == "error")
            except (SortieError, Shortage) as exc:
                self.errors, pause = (str(exc),), self._pause(began)
            except Exception as exc:  # the edge: the others go on
                self._log(facts.DaemonCrashed(traceback=traceback.format_exc()))
                self.errors = (f"it has crashed: {_named(exc)}; the log has the traceback",)
                pause = self._pause(began)
            if not parts.shutdown.asked:
                await self._broken(parts, pause)
        self.status = "ended"
        self.settled.set()

    def _claim(self, settings: Settings) -> None:
        """Take the database and the roots of the settings. Raises SortieError."""
        others = self._others(self.name)
        self.settings = settings
        if (fault := conflict(self.name, settings, others)) is not None:
            self.settings = None
            raise SortieError(fault)

    async def _live(self, workflow: Workflow, parts: SharedParts) -> None:
        """Live a life of the workflow. Raises what ends it before the process ends."""
        member = MemberProcess(self.name, parts)

        async def end_former(mark: int) -> bool:
            return await self._ended(mark, workflow.settings, parts)

        with expected_failures():
            async with (
                candidate(workflow.settings, parts.leaderships) as candidacy,
                self._answering(workflow, candidacy, parts),
            ):
                if not await self._led(candidacy, parts):
                    return
                async with (
                    leading(candidacy, self._log, member.lose_lease),
                    open_database(workflow.settings, end_former) as database,
                ):
                    database.note_process(self._process_name)
                    if candidacy is not None and candidacy.lease is not None:
                        member.lead(workflow.settings, candidacy.lease)
                    try:
                        await self._work(workflow, database, member, candidacy)
                    finally:
                        self.member = None
                        member.release(ended=candidacy is None or not candidacy.is_lost)

    @asynccontextmanager
    async def _answering(
        self, workflow: Workflow, candidacy: Candidacy | None, parts: SharedParts
    ) -> AsyncIterator[None]:
        """Answer for the workflow also while another daemon leads it."""
        self.candidacy = candidacy
        if candidacy is None:
            yield
            return
        settings, path = workflow.settings, str(workflow.path)
        known = known_secrets(settings, self.options.environ, parts.token)
        async with (
            parts.http.standing_by(self.name, settings, candidacy, known) as url,
            standby_endpoint(settings, path, url, parts.token, self._log),
        ):
            yield

    async def _led(self, candidacy: Candidacy | None, parts: SharedParts) -> bool:
        """Wait until the workflow is led here; return False where the process ends before, or the
        file has changed."""
        if candidacy is None:
            return True
        async with trio.open_nursery() as nursery:

            async def leave(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(leave, parts.shutdown.stopping)
            nursery.start_soon(leave, self._again)
            nursery.start_soon(self._show_standby, candidacy)
            await stand_by(candidacy, self._log)
            nursery.cancel_scope.cancel()
        return candidacy.leading.is_set()

    async def _show_standby(self, candidacy: Candidacy) -> None:
        """Count as a standby once that is known."""
        await known_to_stand_by(candidacy)
        self.status, self.errors = "standby", ()
        self.settled.set()

    async def _work(
        self,
        workflow: Workflow,
        database: OpenDatabase,
        member: MemberProcess,
        candidacy: Candidacy | None,
    ) -> None:
        store, root_lock = database.store, database.root_lock
        daemon = Daemon(self.options, workflow, store, root_lock, member, candidacy)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_start, member)
            await daemon.run()
            nursery.cancel_scope.cancel()

    async def _watch_start(self, member: MemberProcess) -> None:
        """Note when the workflow works: then its file is watched by itself."""
        await member.serving.wait()
        self.member, self.status, self.errors = member, "working", ()
        self.settled.set()

    async def _ended(self, mark: int, settings: Settings, parts: SharedParts) -> bool:
        """End what an earlier process left; see open_database."""
        try:
            count = await parts.local.sweep_former(mark, grace=settings.agent.stop_grace)
        except TransportError:
            return False
        if count:
            self._log(OrphansReaped(where="local", count=count))
        return True

    def _pause(self, began: float) -> float:
        """Return the seconds until the next try."""
        if trio.current_time() - began > STEADY:
            self._failures = 0
        self._failures += 1
        return min(FIRST_RETRY * 2.0 ** (self._failures - 1), LONGEST_RETRY)

    async def _broken(self, parts: SharedParts, pause: float | None) -> None:
        """Tell what is wrong, and wait until it may be over."""
        self.status = "broken"
        more = len(self.errors) - 1
        error = self.errors[0] + (f" (and {more} more)" if more else "")
        self._log(facts.WorkflowBroken(error=error, seconds=pause))
        self.settled.set()
        parts.slots.look_soon()
        async with trio.open_nursery() as nursery:

            async def wait(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait, self._again)
            nursery.start_soon(wait, parts.shutdown.stopping)
            nursery.start_soon(self._watch_file)
            if pause is not None:
                nursery.cancel_scope.deadline = trio.current_time() + pause
        self.status = "starting"

    async def _watch_file(self) -> None:
        seen = 0

        def changed() -> None:
            nonlocal seen
            seen += 1
            if seen > 1:  # the first tells of no change
                self._again.set()

        await watch(lambda: self._files, changed)


def _named(error: BaseException) -> str:
    """Return the innermost error of a group, in one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
