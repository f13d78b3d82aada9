"""A daemon's stand-in that starts one command and waits to be killed together with its memory."""

import os
import sys

import trio

from sortie.transports import Command
from sortie.transports.local import LocalTransport, become_subreaper


async def main(argv: tuple[str, ...]) -> None:
    """Run a command with our own environment and pass its first output on."""
    become_subreaper()
    async with LocalTransport().process(
        Command(argv=argv, cwd="/", env=dict(os.environ), grace=0.1)
    ) as process:
        async for number, chunk in process.output():
            os.write(number, chunk)


if __name__ == "__main__":
    trio.run(main, tuple(sys.argv[1:]))
