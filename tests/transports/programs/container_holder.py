"""Holds a container of the tests open with a program in it, and says the container's name.

Arguments: a directory, the word of a daemon, a word for the program's arguments, and the engine.
"""

from __future__ import annotations

import os
import sys

import trio

from sortie.transports import Command
from sortie.transports.local import become_subreaper
from tests.transports.containers import choice, container_transport
from tests.transports.endings import local_transport


async def main(*words: str) -> None:
    workspace, daemon, word, engine = words
    become_subreaper()
    waiting = f"sh -c 'sleep 1000; :' {word}"
    argv = ("sh", "-c", f"trap '' TERM; setsid {waiting} & {waiting} & echo begun; wait")
    command = Command(argv=argv, cwd=workspace, env={"PATH": os.environ["PATH"]})
    async with (
        local_transport("namespaces") as local,
        container_transport(local, workspace, choice(daemon=daemon, engine=engine)) as transport,
        transport.process(command) as process,
    ):
        await anext(process.output())
        container = transport.only
        print(container.name, flush=True)
        await trio.sleep_forever()


trio.run(main, *sys.argv[1:])
