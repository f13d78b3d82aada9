"""A daemon's stand-in that runs one command on a host and waits to be killed; see ``main``."""

import os
import sys

import trio

from sortie.config.settings import Isolation
from sortie.transports import Command
from sortie.transports.remote.launch import Bounds
from sortie.transports.remote.transport import ShellTransport
from sortie.transports.ssh.asyncio_thread import open_asyncio_thread
from sortie.transports.ssh.connection_pool import ConnectionPool
from sortie.transports.ssh.settings import SshSettings


async def main(*words: str) -> None:
    """Run a command of a run on a host, reached with a client's files; pass its output on."""
    host, config, known, key, isolation, cwd, run_id, *argv = words
    settings = SshSettings(
        config=config, known_hosts=known, identity_files=(key,), search_path=os.environ["PATH"]
    )
    async with open_asyncio_thread() as thread:
        transport = ShellTransport(
            host,
            ConnectionPool(host, settings, thread),
            isolation=Isolation(isolation),
            bounds=Bounds(reattach=float(os.environ.get("SORTIE_TEST_REATTACH", "0"))),
        )
        command = Command(argv=tuple(argv), cwd=cwd, env={"SORTIE_RUN_ID": run_id}, grace=0.1)
        async with transport.process(command) as process:
            async for number, chunk in process.output():
                os.write(number, chunk)


if __name__ == "__main__":
    trio.run(main, *sys.argv[1:])
