"""What befalls: people, trackers, agents, disks and clocks, one happening after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import trio

from sortie.config.settings import Settings
from sortie.model import Blocker, Comment, IssueId, TrackerErrorKind, TransportError
from sortie.orchestrator import Orchestrator
from sortie.scheduler import Decision, policy_of
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.transports import Command
from tests.sim.system.machine import Temper
from tests.sim.system.tracker import Line
from tests.sim.system.world import Life, SimWorld, sim_settings
from tests.worker.rig import ROOT

STATES = ("Todo", "Todo", "Doing", "Done", "Dropped", "Backlog", "Review")
KILLED_AFTER_ANSWER = 0.25
"""The chance that a daemon dies as soon as it has told an operator that something is done."""

MOMENTS = (do.StartWorker, do.StopWorker, do.HandOff, do.CleanWorkspace, rec.RecordRetry)
"""What a coincidence may come with."""

Happenings = list[tuple[str, Callable[[], object]]]
"""What may happen, in words and in deed."""


class Schedule:
    """Draws what happens next to a world."""

    def __init__(self, seed: int, world: SimWorld, names: Sequence[str]) -> None:
        self.draw = Random(f"{seed} schedule")
        self.names = names
        self._world = world

    def befall(self, life: Life) -> None:
        """Let one thing happen."""
        draw = self.draw
        kinds = {
            self._people: 30,
            self._operator: 16,
            self._reload: 4,
            self._tracker: 16,
            self._machine: 12,
            self._drive: 6,
            self._agent: 8,
            self._clock: 4,
            self._coincidence: 10,
            self._mend: 20,
        }
        (kind,) = draw.choices(list(kinds), list(kinds.values()))
        what, happening = draw.choice(kind(life))
        self._world.trace.note("befalls", what)
        happening()

    def mend(self) -> None:
        """Let everything around the daemon work well from now on."""
        world = self._world
        world.tracked.line = Line()
        world.tracked.truth.unreadable.clear()
        world.tracked.remember()
        world.drive.heal()
        world.machine.files.faults.clear()
        world.machine.files.pauses.clear()
        world.moods.refuses = world.moods.crashes = world.moods.clings = 0.0
        world.chances.fault = world.chances.hindrance = None
        world.chances.crashes = False
        world.bug = world.ambush = None
        for process in world.machine.alive:
            if not process.cookie:
                process.kill()

    def _mend_but_writes(self) -> None:
        refusal = self._world.tracked.line.refusal
        self.mend()
        self._world.tracked.line.refusal = refusal

    # Kinds of happenings: each returns what may happen

    def _people(self, _life: Life) -> Happenings:
        world, draw = self._world, self.draw
        name, other = draw.choice(self.names), draw.choice(self.names)
        state, text = draw.choice(STATES), str(draw.random())
        labels, priority = draw.choice([(), ("Go",)]), draw.choice([None, 1, 2])
        blocker = Blocker(identifier=other.upper())

        questions = world.drive.disk.questions
        waiting = [str(i) for i, stored in questions.items() if stored.asked.is_open]

        def edit(**changes: object) -> None:
            if name not in world.lost:
                world.tracked.truth.edit(name, **changes)

        return [
            (f"a person moves {name} to {state}", lambda: world.move_issue(name, state)),
            (f"someone moves {name} to {state}", lambda: world.move_issue(name, state)),
            (f"a person wants {name} done", lambda: world.move_issue(name, "Todo")),
            (f"a person closes {name}", lambda: world.move_issue(name, "Done")),
            (f"a person rewrites {name}", lambda: edit(description=text)),
            (f"a person labels {name} {labels}", lambda: edit(labels=labels, priority=priority)),
            (f"{name} is blocked by {other}", lambda: edit(blocked_by=(blocker,))),
            (f"{name} is not blocked", lambda: edit(blocked_by=())),
            (f"a person says something about {name}", lambda: self._say(name)),
            *((f"a person answers for {one}", partial(self._say, one)) for one in waiting * 4),
            (f"{name} is deleted", lambda: self._lose(name)),
            (f"{name} is restored", lambda: self._find(name)),
            (f"{name} is found", lambda: self._find(name)),
        ]

    def _say(self, name: str) -> None:
        if name in self._world.lost:
            return
        truth = self._world.tracked.truth
        known = truth.comments_on(name)
        truth.edit(name, comments=(*known, Comment(author="kim", body="this one")))

    def _lose(self, name: str) -> None:
        if name not in self._world.lost:
            self._world.lost.add(name)
            self._world.account.parked.pop(name, None)
            self._world.tracked.truth.lose(name)

    def _find(self, name: str) -> None:
        if name in self._world.lost:
            self._world.lost.remove(name)
            self._world.tracked.truth.find_again(name)

    def _operator(self, life: Life) -> Happenings:
        name = self.draw.choice(self.names)
        asked = self.draw.choice([name, name.upper()])

        def ask(command: Callable[[int], ev.Event]) -> None:
            self._world.nursery.start_soon(self._ask, life, name, command)

        def park() -> None:
            ask(lambda number: ev.StopAsked(asked, number))

        def retry() -> None:
            ask(lambda number: ev.RetryAsked(asked, number))

        def pause(paused: bool) -> None:
            ask(lambda number: ev.PauseAsked(paused, number))

        return [
            (f"stop {asked}", park),
            (f"retry {asked}", retry),
            (f"retry {asked} again", retry),
            ("pause", lambda: pause(True)),
            ("resume", lambda: pause(False)),
            ("resume again", lambda: pause(False)),
            ("refresh", lambda: ask(ev.RefreshRequested)),
        ]

    async def _ask(self, life: Life, name: str, command: Callable[[int], ev.Event]) -> None:
        """Ask the daemon for something; its word counts from when it is given."""
        world, drive = self._world, self._world.drive
        asked_at = trio.current_time()
        answer = await life.orchestrator.ask(command)
        if life.plug.pulled:
            return
        world.trace.note("operator", f"{command(0)} is answered {answer}")
        leaving = life.orchestrator.giving_up or life.scheduler.crashed
        if answer is None and drive.was_well(asked_at) and not leaving:
            world.trace.wrong(f"{command(0)} had no answer")
        if answer is None or answer.verdict != "done":
            return
        if isinstance(command(0), ev.StopAsked):
            world.account.parked[name] = len(world.tracked.truth.journey(IssueId(name)))
        elif isinstance(command(0), ev.RetryAsked):
            world.account.parked.pop(name, None)
        if self.draw.random() < KILLED_AFTER_ANSWER:
            world.trace.note("world", "kills the daemon right after its answer")
            life.plug.pull()

    def _reload(self, life: Life) -> Happenings:
        settings = self._some_settings()
        return [("other settings", lambda: self.apply(life.orchestrator, settings))]

    def apply(self, orchestrator: Orchestrator, settings: Settings) -> None:
        """Have the daemon obey other settings."""
        self._world.settings = settings
        orchestrator.apply(settings, policy_of(settings))

    def _some_settings(self) -> Settings:
        draw = self.draw
        return sim_settings(
            tracker={
                "active_states": draw.choice([["Todo", "Doing"], ["Todo", "Doing", "Backlog"]]),
                "handoff_state": draw.choice(["Review", "Review", None]),
                "in_progress_state": draw.choice(["Doing", None]),
                "terminal_states": draw.choice([["Done", "Dropped"], ["Done"]]),
                "required_labels": draw.choice([[], [], ["go"]]),
            },
            agent={
                "max_concurrent_agents": draw.randint(1, 4),
                "max_concurrent_agents_by_state": draw.choice([{}, {"doing": 1}, {"todo": 2}]),
                "max_sessions": draw.choice([0, 0, 2, 3]),
                "max_turns": draw.choice([1, 2, 3]),
                "max_retry_backoff_ms": draw.choice([60_000, 300_000]),
            },
            polling={"interval_ms": draw.choice([10_000, 30_000])},
        )

    def _tracker(self, _life: Life) -> Happenings:
        world, draw = self._world, self.draw
        line, name = world.tracked.line, IssueId(draw.choice(self.names))
        chance, kind = draw.choice([0.2, 0.6, 1.0]), draw.choice(list(TrackerErrorKind))
        delay = draw.choice([0.0, 10.0, 50.0])
        return [
            ("the tracker is down", lambda: setattr(line, "down", True)),
            ("the line is down", lambda: setattr(line, "down", True)),
            ("requests get lost", lambda: setattr(line, "lost", chance)),
            ("answers get lost", lambda: setattr(line, "unanswered", chance)),
            ("requests hang", lambda: setattr(line, "hanging", chance)),
            ("answers are nonsense", lambda: setattr(line, "nonsense", chance)),
            ("reads miss issues", lambda: setattr(line, "forgetful", chance)),
            ("requests are limited", lambda: setattr(line, "limited", chance)),
            ("lists lag behind", lambda: setattr(line, "lagging", chance)),
            (f"ways take {delay:g} s", lambda: setattr(line, "delay", delay)),
            (f"writes meet {kind}", lambda: setattr(line, "refusal", kind)),
            (f"all writes meet {kind}", lambda: setattr(line, "refusal", kind)),
            (f"{name} reads {kind}", lambda: world.tracked.truth.unreadable.update({name: kind})),
            ("lists catch up", world.tracked.remember),
        ]

    def _machine(self, _life: Life) -> Happenings:
        world, draw = self._world, self.draw
        files = world.machine.files
        faults = {
            "make_directory": TransportError("no space left on device"),
            "write_file": TransportError("no space left on device"),
            "remove_directory": TransportError("something in it stays"),
            "read_file": TransportError("input/output error"),
            "process": TransportError("no more processes"),
        }
        name, pause = draw.choice(list(faults)), draw.uniform(0, 8)
        alive = [process for process in world.machine.alive if process.name == "agent"]
        victim, signal = draw.choice(alive) if alive else None, draw.choice([9, 15])

        def kill() -> None:
            if victim is not None:
                victim.die_in(0.0, signal)

        return [
            (f"{name} fails", lambda: files.faults.update({name: faults[name]})),
            (f"{name} fails again", lambda: files.faults.update({name: faults[name]})),
            (f"{name} takes {pause:g} s", lambda: files.pauses.update({name: pause})),
            ("the root vanishes", self._vanish),
            ("a shell stands in a workspace", self._squat),
            (f"signal {signal} to {victim}", kill),
        ]

    def _vanish(self) -> None:
        """Have somebody remove the whole root, but for where processes live."""
        files = self._world.machine.files
        if not self._world.machine.inside(ROOT):
            files.directories = {d for d in files.directories if not f"{d}/".startswith(f"{ROOT}/")}
            files.contents = {
                f: c for f, c in files.contents.items() if not f.startswith(f"{ROOT}/")
            }

    def _squat(self) -> None:
        """Have a person's shell stand in a workspace for a while."""
        machine = self._world.machine
        homes = sorted(d for d in machine.files.directories if d.startswith(f"{ROOT}/"))
        if homes:
            command = Command(argv=("bash",), cwd=self.draw.choice(homes), env={})
            seconds = self.draw.uniform(10, 200)
            machine.start("squatter", command, lambda _p: _stay(seconds), Temper())

    def _drive(self, _life: Life) -> Happenings:
        drive, seconds = self._world.drive, self.draw.uniform(0, 5)
        return [
            ("the disk is full", lambda: setattr(drive, "full", True)),
            ("the disk fails", lambda: setattr(drive, "failing", True)),
            (f"commits take {seconds:g} s", lambda: setattr(drive, "slow", seconds)),
        ]

    def _agent(self, _life: Life) -> Happenings:
        world, name, chance = self._world, self.draw.choice(self.names), self.draw.uniform(0, 0.8)
        moods, chances = world.moods, world.chances
        return [
            ("agents refuse", lambda: setattr(moods, "refuses", chance)),
            ("agents refuse again", lambda: setattr(moods, "refuses", chance)),
            ("agents still refuse", lambda: setattr(moods, "refuses", chance)),
            ("the adapter crashes", lambda: setattr(moods, "crashes", chance)),
            ("sessions cling", lambda: setattr(moods, "clings", chance)),
            ("no agent", lambda: setattr(chances, "hindrance", "no program of the agent's")),
            ("no root", lambda: setattr(chances, "fault", "the root belongs to another daemon")),
            ("the preflight crashes", lambda: setattr(chances, "crashes", True)),
            (f"the core crashes over {name}", lambda: setattr(world, "bug", name)),
        ]

    def _clock(self, _life: Life) -> Happenings:
        world, step = self._world, self.draw.choice([-86400.0, -600.0, -30.0, 30.0, 600.0, 86400.0])
        offset = world.wall_offset + step
        return [(f"the clock steps {step:+g} s", lambda: setattr(world, "wall_offset", offset))]

    def _coincidence(self, life: Life) -> Happenings:
        """Have something happen in the very moment in which the daemon decides something."""
        draw, world = self.draw, self._world
        kind = draw.choice(MOMENTS)
        seconds = draw.choice([0.0, 0.5, 3.0, 20.0])
        state = draw.choice(STATES)
        settings = self._some_settings()

        def ask(name: str, command: Callable[[int], ev.Event]) -> None:
            world.nursery.start_soon(self._ask, life, name, command)

        def stop(name: str) -> None:
            ask(name, lambda number: ev.StopAsked(name, number))

        def fail(name: str) -> None:
            world.drive.failing = True
            world.nursery.start_soon(self._heal_in, seconds)

        def fail_and_stop(name: str) -> None:
            fail(name)
            stop(name)

        def move(name: str) -> None:
            world.move_issue(name, state)
            life.orchestrator.tell(ev.RefreshRequested())

        def reload(_name: str) -> None:
            self.apply(life.orchestrator, settings)

        def lie_in_wait(happening: Callable[[str], object]) -> Callable[[], None]:
            def spring(decision: Decision) -> None:
                issue = getattr(decision, "issue", None)
                if isinstance(decision, kind) and issue is not None:
                    world.ambush = None
                    world.trace.note("befalls", f"just then, with {issue.identifier}")
                    happening(issue.id)

            def lie() -> None:
                world.ambush = spring

            return lie

        at = f"with the next {kind.__name__}"
        return [
            (f"the disk fails {at}", lie_in_wait(fail)),
            (f"the disk fails, and an operator stops it {at}", lie_in_wait(fail_and_stop)),
            (f"an operator stops it {at}", lie_in_wait(stop)),
            (f"someone moves it to {state} {at}", lie_in_wait(move)),
            (
                f"other settings {at}",
                lie_in_wait(lambda _n: self.apply(life.orchestrator, settings)),
            ),
            (f"the daemon is killed {at}", lie_in_wait(lambda _name: life.plug.pull())),
        ]

    async def _heal_in(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self._world.drive.heal()

    def _mend(self, life: Life) -> Happenings:
        world = self._world

        def revive(name: str) -> None:
            self._find(name)
            world.move_issue(name, "Todo")
            world.account.parked.pop(name, None)
            life.orchestrator.tell(ev.RetryAsked(name))

        name = self.draw.choice(self.names)
        return [
            ("all works well", self.mend),
            ("all works well, but writes are refused as before", self._mend_but_writes),
            (f"a person revives {name}", lambda: revive(name)),
        ]


async def _stay(seconds: float) -> int:
    await trio.sleep(seconds)
    return 0
