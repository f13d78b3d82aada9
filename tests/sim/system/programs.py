"""What agents and hooks do on the machine, drawn by chance when they are started."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import trio

from sortie.transports import Command
from tests.sim.system.machine import Machine, Process, Program, Temper

MoveIssue = Callable[[str, str], object]
WORDS = (
    "blocked",
    "blocked: which one?",
    "needs-human-review",
    "Needs-Human-Review ",
    "done",
    "what?",
)


@dataclass(slots=True)
class Manners:
    """How programs behave: ``well``, each does its work at once; else as the dice fall."""

    draw: Random
    move_issue: MoveIssue
    well: bool = False


class Shell:
    """Turns commands into programs; ``machine`` is where children are left."""

    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.machine: Machine | None = None

    def __call__(self, command: Command) -> tuple[str, Program, Temper]:
        """Return the name, the program and the temper of what a command starts."""
        name = "agent" if command.argv[0] == "agent" else command.argv[2]
        draw = self.manners.draw
        if self.manners.well:
            return name, _steps(command, 1.0), Temper()
        temper = Temper(
            dies_after=draw.choice([0.0, 0.0, 0.1, 2.0, 4.0, 10.0, math.inf]),
            lingers=draw.choice([0.0, 0.0, 0.0, 0.5, 2.0]),
        )
        program = self._agent(command) if name == "agent" else self._hook(command)
        return name, program, temper

    def _hook(self, command: Command) -> Program:
        draw = self.manners.draw
        seconds = draw.choice([0.0, 0.1, 1.0, 2.0, 5.0])
        kind = draw.randrange(14)
        if kind == 0:
            return _steps(command, seconds, status=1)
        if kind == 1:
            return _steps(command, math.inf)
        if kind == 2:
            return self._leaving(_steps(command, seconds), command)
        return _steps(command, seconds)

    def _agent(self, command: Command) -> Program:
        draw, issue_id = self.manners.draw, command.env.get("SORTIE_ISSUE_ID", "")
        seconds = draw.choice([0.5, 5.0, 20.0, 60.0, draw.uniform(0, 110), draw.uniform(0, 110)])
        plain = _steps(command, seconds)
        match draw.randrange(16):
            case 0 | 1:
                return _steps(command, seconds, status=draw.choice([1, 1, 2, 137, 143]))
            case 2:
                return _crashing(command, seconds, draw.choice([6, 9, 11, 15]))
            case 3:
                return _steps(command, math.inf)
            case 4:
                return _chatting(draw.uniform(1, 100), math.inf)
            case 5 | 6:
                return _chatting(draw.uniform(1, 100), draw.randrange(1, 8))
            case 7:
                word, status = draw.choice(WORDS), draw.choice([0, 0, 1])
                return self._writing(_steps(command, seconds, status=status), word)
            case 8 | 9:
                state = draw.choice(["Todo", "Doing", "Done", "Backlog", "Review"])
                return self._moving(plain, issue_id, state)
            case 10 | 11:
                return self._leaving(plain, command)
            case _:
                return plain

    def _writing(self, program: Program, word: str) -> Program:
        async def write(process: Process) -> int:
            status = await program(process)
            assert self.machine is not None
            if process.cwd in self.machine.files.directories:
                self.machine.files.contents[f"{process.cwd}/.sortie/status"] = word.encode()
            return status

        return write

    def _moving(self, program: Program, issue_id: str, state: str) -> Program:
        async def move(process: Process) -> int:
            status = await program(process)
            self.manners.move_issue(issue_id, state)
            return status

        return move

    def _leaving(self, program: Program, command: Command) -> Program:
        """Leave a child behind, which works on for a while."""
        draw = self.manners.draw
        seconds = draw.choice([1.0, 30.0, math.inf])
        temper = Temper(dies_after=draw.choice([0.0, 3.0, math.inf]), lingers=draw.uniform(0, 1))

        async def leave(process: Process) -> int:
            assert self.machine is not None
            self.machine.start("child", command, _steps(command, seconds), temper, process)
            return await program(process)

        return leave


def _steps(command: Command, seconds: float, *, status: int = 0) -> Program:
    async def work(process: Process) -> int:
        process.say("working")
        await trio.sleep(seconds)
        process.say("done")
        return status

    return work


def _chatting(every: float, times: float) -> Program:
    async def chat(process: Process) -> int:
        said = 0
        while said < times:
            await trio.sleep(every)
            process.say("still at it")
            said += 1
        return 0

    return chat


def _crashing(command: Command, seconds: float, signal: int) -> Program:
    async def crash(process: Process) -> int:
        await trio.sleep(seconds)
        process.die_in(0.0, signal)
        await trio.sleep_forever()
        return 0

    return crash
