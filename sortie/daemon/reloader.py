"""WORKFLOW.md while the daemon runs: watched, read again, and the last good settings kept."""

from __future__ import annotations

from collections.abc import Callable

import trio
from msgspec.structs import replace

from sortie.config.reload import keep_restart_only, needs_restart
from sortie.daemon.options import RunOptions
from sortie.daemon.run_contexts import RunContexts
from sortie.daemon.tracker import states_of
from sortie.daemon.workflow_file import load_workflow
from sortie.facts import WorkflowReloaded
from sortie.model import SortieError, WorkflowError
from sortie.orchestrator import Orchestrator
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.resources import LONGEST_PAUSE, Shortage, run_in_thread
from sortie.scheduler import policy_of
from sortie.telemetry import Publish
from sortie.web.state import WorkflowView
from sortie.workflow.loader import Workflow
from sortie.workflow.watcher import watch


def use_settings(
    workflow: Workflow, tracker: GuardedTracker, contexts: RunContexts, orchestrator: Orchestrator
) -> None:
    """Let tracker, runs and scheduler go by other settings, or none of them. Raises SortieError."""
    tracker.configure(states_of(workflow.settings))
    try:
        contexts.use(workflow)
    except SortieError:
        tracker.configure(states_of(orchestrator.settings))
        raise
    tracker.trust(workflow.settings.trust)
    orchestrator.apply(workflow.settings, policy_of(workflow.settings))


class Reloader:
    """Knows the workflow in force, and whether the file is valid now."""

    def __init__(
        self,
        options: RunOptions,
        workflow: Workflow,
        publish: Publish,
        apply: Callable[[Workflow], None],
    ) -> None:
        self._options = options
        self._publish = publish
        self._apply = apply
        self._due = trio.Event()
        self._forced = False
        self._last_read = workflow
        self.workflow = workflow
        self.errors: tuple[str, ...] = ()
        self._files = (workflow.path, *workflow.files)

    def view(self) -> WorkflowView:
        """Return what the API shows."""
        return WorkflowView(path=str(self.workflow.path), valid=not self.errors, errors=self.errors)

    def force(self) -> None:
        """Read the file again even if it has not changed."""
        self._forced = True
        self._due.set()

    async def run(self) -> None:
        """Watch the file, and read it again when it changes, until cancelled."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, lambda: self._files, lambda: self._due.set())
            while True:
                await self._due.wait()
                self._due = trio.Event()
                try:
                    await self._reload()
                except Shortage:
                    await trio.sleep(LONGEST_PAUSE)
                    self._due.set()

    async def _reload(self) -> None:
        forced, self._forced = self._forced, False
        try:
            fresh = await run_in_thread(load_workflow, self._options)
        except Shortage:
            self._forced |= forced
            raise
        except WorkflowError as exc:
            self._files = (self.workflow.path, *exc.files)
            errors = tuple(str(p) for p in exc.problems if p.severity == "error")
            if forced or errors != self.errors:
                self.errors = errors
                self._publish(WorkflowReloaded(errors=errors))
            return
        self._files = (self.workflow.path, *fresh.files)
        if not forced and not self.errors and fresh == self._last_read:
            return  # saved without a change
        self.errors = ()
        restart = needs_restart(self.workflow.settings, fresh.settings)
        self._last_read = fresh
        kept = keep_restart_only(self.workflow.settings, fresh.settings)
        workflow = replace(fresh, settings=kept)
        try:
            self._apply(workflow)
        except SortieError as exc:
            self.errors = (str(exc),)
            self._publish(WorkflowReloaded(errors=self.errors))
            return
        self.workflow = workflow
        self._publish(
            WorkflowReloaded(warnings=tuple(map(str, fresh.warnings)), needs_restart=restart)
        )
