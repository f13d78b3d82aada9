"""What befalls daemons, their machines, the networks and the server, and for how long."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

import trio

from sortie.scheduler import events as ev
from tests.sim.leases.wire import Weather, Wire
from tests.sim.leases.world import LeaseWorld, Station

STATES = ("Todo", "Todo", "Doing", "Done", "Backlog", "Review")
MOST_DELAY = 1.0
"""Seconds that a way to the tracker takes at most: less than is left of a lease when its holder is
killed."""

LATE_ANSWER = 3.9
"""Seconds after which answers come that a keeper just waits for."""

Happenings = list[tuple[str, Callable[[], object]]]


class LeaseSchedule:
    """Draws what happens next; each trouble ends by itself. Of two things that happen one is
    ``often`` one whose name begins so, where any does."""

    def __init__(self, seed: int, world: LeaseWorld, often: tuple[str, ...] = ()) -> None:
        self.draw = Random(f"{seed} lease schedule")
        self._often = often
        self._world = world
        self._scopes: list[trio.CancelScope] = []

    def befall(self) -> None:
        """Let one thing happen."""
        draw, stations = self.draw, self._world.stations
        leading = [s for s in stations if s.daemon is not None and s.daemon.lives]
        station = draw.choice(leading if leading and draw.random() < 0.6 else stations)
        kinds: dict[Callable[[Station], Happenings], int] = {
            self._processes: 30,
            self._networks: 30,
            self._server: 14,
            self._operators: 14,
            self._people: 12,
        }
        (kind,) = draw.choices(list(kinds), list(kinds.values()))
        what, happening = draw.choice(kind(station))
        if self._often and draw.random() < 0.5:
            every = [each for kind in kinds for each in kind(station)]
            what, happening = draw.choice([x for x in every if x[0].startswith(self._often)])
        self._world.trace.note("befalls", f"{station.name}: {what}")
        happening()

    def mend(self) -> None:
        """Let everything work well from now on."""
        world = self._world
        for scope in self._scopes:
            scope.cancel()
        world.server.weather.cut = False
        world.loses_notifications = 0.0
        for workflow in world.workflows:
            workflow.rows.slow = 0.0
        for wire in self._wires():
            wire.weather = Weather()
        world.server.weather.there = world.server.weather.back = 0.0
        for station in world.stations:
            station.line.down, station.line.delay, station.line.unanswered = False, 0.5, 0.0
            station.restart_in, station.wanted = 1.0, True
            station.sleep.thaw()
            if station.daemon is not None:
                station.daemon.around.plug.thaw()
        for row in world.server.daemons.values():
            row.draining = False
        world.manners.well = True

    def _wires(self) -> list[Wire]:
        stations = self._world.stations
        return [wire for s in stations for wire in (s.database, *s.host_wires.values())]

    def _for_a_while(self, begin: Callable[[], object], end: Callable[[], object]) -> None:
        """Have a trouble that ends."""
        seconds = self._duration()

        async def trouble() -> None:
            await trio.sleep(seconds)
            end()

        begin()
        self._start(trouble)

    def _start(self, trouble: Callable[[], Awaitable[object]]) -> None:
        """Begin something that ends when all is mended, at the latest."""
        scope = trio.CancelScope()
        self._scopes.append(scope)

        async def until_mended() -> None:
            with scope:
                await trouble()

        self._world.nursery.start_soon(until_mended)

    def _duration(self) -> float:
        draw = self.draw
        return draw.choice([draw.uniform(1, 9), draw.uniform(8, 20), draw.uniform(15, 60)])

    # Kinds of happenings: each returns what may happen

    def _processes(self, station: Station) -> Happenings:
        draw = self.draw
        seconds, restart_in = self._duration(), draw.choice([0.5, 5.0, 40.0])
        if draw.random() < 0.05:
            seconds = draw.uniform(600, 7200)

        def kill() -> None:
            station.restart_in = restart_in
            station.kill("kill -9")

        def stop() -> None:
            self._start(partial(station.stop_for, seconds))

        def sleep() -> None:
            self._start(partial(station.sleep_for, seconds + draw.choice([0.0, 16.0])))

        def doze() -> None:
            self._start(partial(station.sleep_for, self._until_last_moment(station)))

        return [
            ("the machine sleeps until a lease is nearly over", doze),
            ("the daemon is killed", kill),
            ("the daemon dies", kill),
            (f"SIGSTOP for {seconds:g} s", stop),
            (f"SIGSTOP, then {seconds:g} s", stop),
            (f"the machine sleeps, for {seconds:g} s at least", sleep),
        ]

    def _until_last_moment(self, station: Station) -> float:
        """Return in how many seconds a lease of a station's daemon is nearly over."""
        held = [
            candidacy
            for candidacy in (station.daemon.keeper.candidacies.values() if station.daemon else ())
            if candidacy.lease is not None
        ]
        left = 14.0
        if held:
            over_at = self.draw.choice(held).sent_at + self._world.server.length
            left = station.clock.true(over_at) - trio.current_time()
        return max(0.1, left - self.draw.uniform(0.01, 1.0))

    def _networks(self, station: Station) -> Happenings:
        draw, database = self.draw, station.database
        late, chance = draw.uniform(0.5, 6.0), draw.choice([0.2, 0.5])
        host = station.host_wires[draw.choice(sorted(station.host_wires))]

        def worse(wire: Wire, **weather: float | bool) -> Callable[[], None]:
            def mend() -> None:
                wire.weather = Weather()

            def begin() -> None:
                for name, value in weather.items():
                    setattr(wire.weather, name, value)

            return lambda: self._for_a_while(begin, mend)

        def slow_then(further: Callable[[], object]) -> Callable[[], None]:
            async def later() -> None:
                await trio.sleep(draw.uniform(8, 16))
                further()

            def begin() -> None:
                worse(database, back=LATE_ANSWER)()
                self._start(later)

            return begin

        def stop() -> None:
            self._start(partial(station.stop_for, 30.0))

        def cut_with_slow_hosts() -> None:
            worse(database, cut=True)()
            for wire in station.host_wires.values():
                worse(wire, there=14.0)()

        def line(**troubles: float | bool) -> Callable[[], None]:
            def begin() -> None:
                for name, value in troubles.items():
                    setattr(station.line, name, value)

            def mend() -> None:
                station.line.down, station.line.unanswered = False, 0.0
                station.line.delay = 0.5

            return lambda: self._for_a_while(begin, mend)

        return [
            ("cut from the database", worse(database, cut=True)),
            ("cut from the database again", worse(database, cut=True)),
            (f"answers of the database take {late:g} s", worse(database, back=late)),
            (f"requests to the database take {late:g} s", worse(database, there=late)),
            ("requests to the database get lost", worse(database, lost=chance)),
            ("answers of the database get lost", worse(database, unanswered=chance)),
            ("answers come late, and then none", slow_then(worse(database, cut=True))),
            ("answers come late, then SIGSTOP", slow_then(stop)),
            ("cut from the database, hosts are slow", cut_with_slow_hosts),
            ("cut from the tracker", line(down=True)),
            ("answers of the tracker get lost", line(unanswered=chance)),
            ("the tracker is slow", line(delay=MOST_DELAY)),
            ("cut from a host", worse(host, cut=True)),
            ("a host is slow", worse(host, there=late, back=late)),
            ("cut from all", self._cut_from_all(station)),
        ]

    def _cut_from_all(self, station: Station) -> Callable[[], None]:
        wires = [station.database, *station.host_wires.values()]

        def cut(is_cut: bool) -> Callable[[], None]:
            def change() -> None:
                station.line.down = is_cut
                for wire in wires:
                    wire.weather.cut = is_cut

            return change

        return lambda: self._for_a_while(cut(True), cut(False))

    def _server(self, _station: Station) -> Happenings:
        world, draw = self._world, self.draw
        weather, rows = world.server.weather, draw.choice(world.workflows).rows
        seconds = draw.uniform(1, 6)

        def change(thing: object, name: str, value: object, well: object) -> Callable[[], None]:
            return lambda: self._for_a_while(
                lambda: setattr(thing, name, value), lambda: setattr(thing, name, well)
            )

        return [
            ("the server is away", change(weather, "cut", True, False)),
            (f"the server answers after {seconds:g} s", change(weather, "back", seconds, 0.0)),
            (f"transactions take {seconds:g} s", change(rows, "slow", seconds, 0.0)),
            ("notifications get lost", change(world, "loses_notifications", 0.7, 0.0)),
        ]

    def _operators(self, station: Station) -> Happenings:
        draw, daemon = self.draw, station.daemon
        step = draw.choice([-3600.0, -20.0, 20.0, 3600.0])

        def drain(draining: bool) -> None:
            row = daemon and self._world.server.daemons.get(daemon.id)
            if row:
                row.draining = draining
                self._world.server.notify()

        def leave() -> None:
            station.wanted = False
            if daemon is not None:
                daemon.stop()

        def come() -> None:
            station.wanted = True

        def set_clock() -> None:
            station.clock.wall_offset += step

        return [
            ("drain", lambda: self._for_a_while(lambda: drain(True), lambda: drain(False))),
            ("drain for long", lambda: drain(True)),
            ("lead again", lambda: drain(False)),
            ("leave", lambda: self._for_a_while(leave, come)),
            ("come", come),
            (f"the clock is set by {step:+g} s", set_clock),
        ]

    def _people(self, _station: Station) -> Happenings:
        draw, workflow = self.draw, self.draw.choice(self._world.workflows)
        name, state = draw.choice(workflow.names), draw.choice(STATES)
        return [
            (f"a person moves {name} to {state}", lambda: workflow.move_issue(name, state)),
            (f"a person wants {name} done", lambda: workflow.move_issue(name, "Todo")),
            (f"a person retries {name}", lambda: self.retry(name)),
        ]

    def retry(self, name: str) -> None:
        """Have the leader of an issue try it again."""
        workflow = self._world.workflow_of(name).name
        for daemon in self._world.daemons:
            life = daemon.lives.get(workflow)
            if life is not None and life.orchestrator is not None:
                life.orchestrator.tell(ev.RetryAsked(name))
                life.orchestrator.tell(ev.RefreshRequested())
