"""Holds a container on a host open with a program in it, and says the container's name.

Arguments: the host, a client's files, a directory, a word for the program's arguments,
and an engine.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import trio

sys.path.insert(0, str(Path(__file__).parents[3]))

from sortie.config.settings import Isolation
from sortie.transports import Command
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings
from tests.transports.containers import choice, remote_container_transport


async def main(*words: str) -> None:
    host, config, known, key, workspace, word, engine = words
    settings = SshSettings(
        config=config, known_hosts=known, identity_files=(key,), search_path=os.environ["PATH"]
    )
    waiting = f"sh -c 'sleep 1000; :' {word}"
    argv = ("sh", "-c", f"trap '' TERM; setsid {waiting} & {waiting} & echo begun; wait")
    command = Command(argv=argv, cwd=workspace, env={"PATH": os.environ["PATH"]}, grace=0.0)
    async with open_asyncio_thread() as thread:
        bounds = Bounds(handshake=60.0)
        pool = ConnectionPool(host, settings, thread)
        outside = ShellTransport(host, pool, bounds=bounds, isolation=Isolation.AUTO)
        async with (
            remote_container_transport(outside, workspace, choice(engine=engine)) as transport,
            transport.process(command) as process,
        ):
            await anext(process.output())
            print(transport.only.name, flush=True)
            await process.wait()


trio.run(main, *sys.argv[1:])
