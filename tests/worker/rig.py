"""A worker's surroundings, all in memory: what it is given, and a journal of what it does."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
import trio
from trio.testing import MockClock

from sortie.config.settings import Settings
from sortie.facts import Fact
from sortie.model import AgentSession, Finish, Finished, Issue, IssueId, RunId, RunReport
from sortie.model.asked_questions import AskedQuestion
from sortie.model.traces import RunTrace
from sortie.orchestrator.guarded_tracker import GuardedTracker
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from sortie.telemetry import facts
from sortie.worker import Assignment, RunContext, RunReporter, RunScopes, work
from sortie.workflow import composing
from sortie.workflow.prompts import Prompt, PromptContext
from sortie.workflow.renderer import render
from sortie.workspaces import Secrets, Workspaces
from tests.agents.fake import FakeAgent
from tests.trackers.fake import FakeTracker
from tests.transports.fake import Does, FakeTransport

ROOT = "/root"
HOME = "/home/of/workflow"
RUN = RunId("run-1")
HOOKS = {"after_create": Does(), "before_run": Does(), "after_run": Does()}
USED = Finished(finish=Finish.TURNS_USED)
_F = TypeVar("_F", bound=Fact)


def settings_of(**sections: Mapping[str, Any]) -> Settings:
    """Return settings; sections are written as in WORKFLOW.md and change single keys."""
    tree: dict[str, dict[str, Any]] = {
        "tracker": {
            "kind": "file",
            "active_states": ["Todo", "Doing"],
            "terminal_states": ["Done"],
        },
        "workspace": {"root": ROOT},
        "agent": {"kind": "fake", "max_turns": 1, "status_instructions": False},
    }
    for name, section in sections.items():
        tree[name] = {**tree.get(name, {}), **section}
    return Settings.model_validate({**tree, "db_path": "/db"})


def issue(name: str = "a", state: str = "Todo", **fields: Any) -> Issue:
    """Return an issue named after its id."""
    return Issue(
        id=IssueId(name), identifier=name.upper(), title=f"Mend {name}", state=state, **fields
    )


@contextmanager
def clock_that_waits_for_threads(patch: pytest.MonkeyPatch) -> Iterator[MockClock]:
    """Give a virtual clock that jumps, but stands still while a prompt is rendered.

    Rendering is done in a thread, which trio's idleness does not see: the clock would jump on
    before the thread is done.
    """
    clock = MockClock(autojump_threshold=0)
    rendering = 0

    async def render_meanwhile(prompt: Prompt, context: PromptContext, **more: Any) -> str:
        nonlocal rendering
        rendering += 1
        clock.autojump_threshold = math.inf
        try:
            return await render(prompt, context, **more)
        finally:
            rendering -= 1
            if not rendering:
                clock.autojump_threshold = 0

    patch.setattr(composing, "render", render_meanwhile)
    yield clock


class Rig:
    """One issue's worker and its world.

    ``journal`` holds in one order what the worker, its agent and its hooks did; ``facts`` and
    ``told`` what it published and reported. ``on_commit`` is awaited before a commit returns.
    ``hooks`` says what each hook's script does; ``hooking`` are further keys of that section.
    """

    def __init__(
        self,
        *,
        prompt: str = "Work on {{ issue.identifier }}, turn {{ run.turn_number }}.",
        hooks: Mapping[str, Does] | None = None,
        present: Issue | None = None,
        **sections: Mapping[str, Any],
    ) -> None:
        self.journal: list[str] = []
        self.facts: list[Fact] = []
        self.told: list[Event] = []
        self.issue = present or issue()
        self.tracker = FakeTracker([self.issue])
        self.agent = FakeAgent(note=self.journal.append)
        self.transport = FakeTransport(hooks, directories=[HOME], note=self.journal.append)
        self.scopes = RunScopes()
        self._worked = False
        self.attempt = 0
        self.trace: RunTrace | None = None
        self.resume: AgentSession | None = None
        self.answered: AskedQuestion | None = None
        self.environ: dict[str, str] = {"PATH": "/bin", "TRACKER_KEY": "hush"}
        self.redact: Callable[[str], str] = str
        self.on_commit: Callable[[Event], Awaitable[object]] | None = None
        names = {name: name for name in hooks or {} if name in _HOOKS}
        sections["hooks"] = {**names, **sections.pop("hooking", {})}
        self.settings = settings_of(**sections)
        self.prompt = Prompt(source=prompt)

    async def work(self) -> RunReport:
        """Run a worker to its end."""
        if self._worked:
            self.scopes = RunScopes()
        self._worked = True
        job = Assignment(
            run_id=RUN,
            issue=self.issue,
            attempt=self.attempt,
            fetched_at=trio.current_time(),
            trace=self.trace,
            resume=self.resume,
            answered=self.answered,
        )
        reports = RunReporter(
            tell=self._tell,
            commit=self._commit,
            publish=self._publish,
            is_active=lambda i: i.state in self.settings.tracker.active_states,
        )
        return await work(job, self.context(), reports, self.scopes)

    async def work_stopped_at(self, seconds: float) -> RunReport:
        """Run the worker and stop it after some seconds."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_at, seconds)
            report = await self.work()
            nursery.cancel_scope.cancel()
        return report

    def context(self) -> RunContext:
        """Return the worker's tools."""
        return RunContext(
            settings=self.settings,
            prompt=self.prompt,
            agent=self.agent,
            transport=self.transport,
            workspaces=Workspaces(ROOT, self.transport),
            tracker=GuardedTracker(self.tracker, self._publish),
            environ=self.environ,
            secrets=Secrets(names=frozenset({"TRACKER_KEY"}), values=frozenset({"hush"})),
            local=self.transport,
            workflow=f"{HOME}/WORKFLOW.md",
            redact=self.redact,
            resumes=self.resume is not None,
        )

    def of(self, kind: type[_F]) -> list[_F]:
        """Return the facts of one kind."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def assert_nothing_open(self) -> None:
        """Fail where a session, turn or process is left."""
        self.agent.assert_over()
        assert self.transport.alive == []

    async def _stop_at(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.scopes.stop()

    def _publish(self, fact: Fact) -> None:
        self.facts.append(fact)
        match fact:
            case facts.RunPhaseChanged(phase=phase):
                self.journal.append(f"phase {phase}")
            case facts.TransitionCompleted(state=state, result=result):
                self.journal.append(f"transition to {state}: {result}")
            case _:
                pass

    def _tell(self, event: Event) -> None:
        self.told.append(event)

    async def _commit(self, event: Event) -> None:
        self.told.append(event)
        if self.on_commit is not None:
            await self.on_commit(event)
        await trio.lowlevel.checkpoint()
        match event:
            case ev.WorkspaceMade():
                self.journal.append("workspace on disk")
            case ev.TurnStarted(_, turn):
                self.journal.append(f"turn {turn} on disk")
            case _:
                raise AssertionError(f"nobody waits for {event}")


_HOOKS = ("after_create", "before_run", "after_run", "before_remove")
