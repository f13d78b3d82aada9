"""What a worker is given: its assignment, its tools, and a way to report."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

import trio
from msgspec import Struct

from sortie.agents import Agent
from sortie.config.settings import Settings
from sortie.facts import Phase
from sortie.forges import Forge
from sortie.model import AgentSession, Delivery, Issue, RunId
from sortie.model.asked_questions import AskedQuestion
from sortie.model.git_urls import GitUrl
from sortie.model.hiding import repr_without
from sortie.model.secrets import unchanged
from sortie.model.stages import PassedStage
from sortie.model.tools import ToolName
from sortie.model.traces import RunTrace
from sortie.model.watches import Reaction
from sortie.scheduler import Event
from sortie.scheduler.budgets import BudgetStanding
from sortie.scheduler.memory import TakenOver
from sortie.store import HistoryRow
from sortie.telemetry import Publish, facts
from sortie.trackers import Tracker
from sortie.transports import Transport
from sortie.transports.kept_programs import KeepsPrograms
from sortie.transports.walls import SandboxedTransport
from sortie.workflow.prompts import Prompt
from sortie.workspaces import Secrets, Workspaces
from sortie.workspaces.git_values import GitAccess
from sortie.workspaces.repository import Repository


class Assignment(Struct, frozen=True, kw_only=True):
    """What is to be done. ``fetched_at`` is when the issue was re-read, in trio's time;
    ``resume`` is the session of the issue's last run there, and ``delivery`` what that left half
    done. ``reaction`` is what the run is to answer, None where nothing has happened, and
    ``previous`` the stage that the issue has passed, None for the first. ``trace`` is where the run
    stands in its trace, None where there is none. ``answered`` and ``granted`` are as in
    StartWorker. ``taken_over`` is the run as another daemon has left it, None for a new one."""

    run_id: RunId
    issue: Issue
    attempt: int
    fetched_at: float
    resume: AgentSession | None = None
    delivery: Delivery | None = None
    reaction: Reaction | None = None
    previous: PassedStage | None = None
    trace: RunTrace | None = None
    answered: AskedQuestion | None = None
    granted: tuple[str, ...] = ()
    taken_over: TakenOver | None = None


class RemoteRepository(Struct, frozen=True, kw_only=True):
    """A repository, and how it is reached. ``at`` returns it as the run's host has it, below a
    directory of workspaces there.

    ``access`` returns what git may use for the next hour, and raises TrackerError. ``forge`` opens
    pull requests, None where there is none to open.
    """

    url: GitUrl
    at: Callable[[str], Repository]
    access: Callable[[], Awaitable[GitAccess]]
    forge: Forge | None = None


class ReviewerAgent(Struct, frozen=True, kw_only=True):
    """The agent that judges work, kept to reading; ``model`` is the one that was asked for.

    ``handed_over`` is as in RunContext.
    """

    kind: str
    agent: Agent
    model: str | None = None
    handed_over: tuple[str, ...] = ()


class RunContext(Struct, frozen=True, kw_only=True):
    """The tools of a run, as the settings in force at its start give them.

    ``environ`` is the daemon's environment and ``secrets`` what of it is not passed on.
    ``transport`` is the run's host, ``local`` this machine; ``workflow`` is WORKFLOW.md's path.
    ``handed_over`` names what of ``environ`` an agent on a remote host gets; ``resumes`` tells
    whether the agent can go on with a session by its id. ``redact`` returns a text without the
    secrets that the daemon knows; whatever comes from a run is passed through it. ``remote`` is the
    repository that runs work in, ``reviewer`` judges the work, and ``wall`` is around the agents
    and the commands of verify; each is None where there is none. ``tools`` are those that the agent
    has. ``adoptable`` tells whether another daemon could go on with turns of the agent,
    ``agent_command`` is what the settings say of its program, and ``daemon`` is this one, as
    HOST:PID.
    """

    settings: Settings
    prompt: Prompt
    agent: Agent
    transport: Transport
    workspaces: Workspaces
    tracker: Tracker
    environ: Mapping[str, str]
    secrets: Secrets
    local: Transport
    workflow: str
    handed_over: tuple[str, ...] = ()
    resumes: bool = False
    redact: Callable[[str], str] = unchanged
    remote: RemoteRepository | None = None
    reviewer: ReviewerAgent | None = None
    wall: SandboxedTransport | None = None
    tools: tuple[ToolName, ...] = ()
    adoptable: bool = False
    agent_command: str = ""
    daemon: str = ""

    __repr__ = repr_without("environ", "redact")

    @property
    def inside(self) -> Transport:
        """Where agents and commands of verify start: the run's host, within its wall if it has
        one."""
        return self.transport if self.wall is None else self.wall

    @property
    def turns_outlive_daemon(self) -> bool:
        """Whether another daemon could go on with a turn: what a sandbox and tools need ends with
        its daemon."""
        if self.tools or self.wall is not None:
            return False
        keeps = isinstance(self.transport, KeepsPrograms) and self.transport.keeps_programs
        return self.adoptable and keeps


class RunReporter(Struct, frozen=True, kw_only=True):
    """How a worker tells what happens.

    ``tell`` returns at once; ``commit`` returns once the event's records are on disk.
    ``is_active`` asks by the settings of now. ``budget`` tells what an issue and the day may use
    and have used, ``history`` the newest runs of an issue, so many at most; it raises StoreError.
    Both are None where nothing tells that.
    """

    tell: Callable[[Event], None]
    commit: Callable[[Event], Awaitable[None]]
    publish: Publish
    is_active: Callable[[Issue], bool]
    budget: Callable[[Issue], BudgetStanding] | None = None
    history: Callable[[Issue, int], Awaitable[Sequence[HistoryRow]]] | None = None

    def enter(self, run_id: RunId, phase: Phase) -> None:
        """Tell what a run is busy with from now on."""
        self.publish(facts.RunPhaseChanged(run_id=run_id, phase=phase))


class RunScopes:
    """How a worker is ended: ``stop`` is politely, ``cut`` also ends what it does to clean up.

    ``work`` is the scope of the whole worker. Each scope is entered once. ``can_be_let_go``: the
    agent works in a program with which another daemon can go on, and ``is_let_go``: that is to be.
    """

    def __init__(self) -> None:
        self.can_be_let_go = self.is_let_go = False
        self.work = trio.CancelScope()
        self._cut: list[trio.CancelScope] = []
        self._is_cut = False

    def shield(self) -> trio.CancelScope:
        """Return a scope that a stop does not reach but a cut does."""
        scope = self.bound(math.inf)
        scope.shield = True
        return scope

    def bound(self, seconds: float) -> trio.CancelScope:
        """Return a scope with a deadline, which a cut reaches even where it is shielded later."""
        scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._cut.append(scope)
        if self._is_cut:
            scope.cancel()
        return scope

    def stop(self) -> None:
        """End the worker; what it does to clean up is done."""
        self.work.cancel()

    def let_go(self) -> None:
        """End the worker and leave the run to another daemon, where that can go on with it."""
        if self.can_be_let_go:
            self.is_let_go = True
            self.cut()

    def cut(self) -> None:
        """End the worker without its hooks; its processes are ended all the same."""
        self._is_cut = True
        self.stop()
        for scope in self._cut:
            scope.cancel()
