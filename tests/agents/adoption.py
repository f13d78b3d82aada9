"""Starts turns as a daemon does with which another one goes on, and has them read anew."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sortie.transports import Command, Process, Transport

_FIRST = """a=$1 b=$2; shift 2
"$@" >"$a" 2>"$b"; s=$?; echo $s >"$a.exit"; cat "$a"; cat "$b" >&2; exit $s"""
_AGAIN = 'cat "$1"; cat "$2" >&2; exit "$3"'


class TurnTapes:
    """Notes the memo, the output and the exit of each turn's program; ``again`` plays the last one
    to the daemon that goes on with it, and from when it ``goes_on`` it starts programs, of which
    ``last`` are the arguments."""

    def __init__(self, transport: Transport, folder: str) -> None:
        self._transport = transport
        self._files = [os.path.join(folder, name) for name in ("tape1", "tape2")]
        self.memos: list[str] = []
        self._status = 0
        self.goes_on = False
        self.last: tuple[str, ...] = ()

    @asynccontextmanager
    async def record(self, command: Command, memo: str) -> AsyncIterator[Process]:
        """Start a program, and note what it says."""
        self.memos.append(memo)
        one, two = self._files
        argv = ("sh", "-c", _FIRST, "sh", one, two, *command.argv)
        async with self._transport.process(_other(command, argv)) as process:
            yield process
        with open(f"{one}.exit", encoding="utf-8") as file:
            self._status = int(file.read())

    @asynccontextmanager
    async def again(self, command: Command, memo: str) -> AsyncIterator[Process]:
        """Say what the last program has said, and end as it did."""
        if self.goes_on:
            self.last = command.argv
            async with self._transport.process(command) as process:
                yield process
            return
        assert memo == self.memos[-1]
        argv = ("sh", "-c", _AGAIN, "sh", *self._files, str(self._status))
        async with self._transport.process(_other(command, argv)) as process:
            yield process


def _other(command: Command, argv: tuple[str, ...]) -> Command:
    env = {**command.env, "PATH": "/usr/bin:/bin"}
    return Command(argv=argv, cwd=command.cwd, env=env, stdin=command.stdin, grace=command.grace)
