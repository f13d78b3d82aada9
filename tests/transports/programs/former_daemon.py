"""A daemon's stand-in that starts one command and waits to be killed together with its memory."""

import os
import sys

import trio

from sortie.transports import Command
from sortie.transports.local import (
    LocalTransport,
    RunGroups,
    become_subreaper,
    carry,
    plain_fork_server,
)


async def main(argv: tuple[str, ...]) -> None:
    """Run a command with our own environment and directory and pass its first output on.

    FORMER_MARK, where it is set, is the mark to carry; FORMER_GROUPS the name of our cgroups.
    """
    become_subreaper()
    if mark := os.environ.pop("FORMER_MARK", ""):
        assert carry(int(mark))
    name = os.environ.pop("FORMER_GROUPS", "")
    groups = RunGroups.open(name) if name else None
    server = plain_fork_server()
    async with LocalTransport(groups=groups, server=server).process(
        Command(argv=argv, cwd=os.getcwd(), env=dict(os.environ), grace=0.1)
    ) as process:
        async for number, chunk in process.output():
            os.write(number, chunk)


if __name__ == "__main__":
    trio.run(main, tuple(sys.argv[1:]))
