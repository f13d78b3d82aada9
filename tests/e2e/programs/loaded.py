"""``sortie`` with its modules loaded, which is a second of processor time each time.

It is asked by a socket, for each program: with its arguments, directory and environment, and the
descriptors of stdin, stdout, stderr, and a pipe that gets the pid, and at the end the exit status.
The program is a fork of this process, which has imported modules, compiled templates of pages and
done nothing else.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys

MODULES = (
    "argparse",
    "pydantic.dataclasses",
    "sortie.agents.acp.settings",
    "sortie.agents.claude_code.settings",
    "sortie.agents.kiro.agent",
    "sortie.cli.arguments",
    "sortie.cli.commands",
    "sortie.cli.completion",
    "sortie.cli.discovery",
    "sortie.cli.errors",
    "sortie.cli.history",
    "sortie.cli.parser",
    "sortie.cli.run",
    "sortie.cli.streams",
    "sortie.daemon.daemon",
    "sortie.daemon.http_server",
    "sortie.daemon.http_service",
    "sortie.daemon.process",
    "sortie.documents.json_reader",
    "sortie.kiro.conversations.stores",
    "sortie.store.readonly",
    "sortie.trackers.file.checks",
    "sortie.trackers.file.tracker",
    "sortie.trackers.gitea.settings",
    "sortie.trackers.github.settings",
    "sortie.trackers.gitlab.settings",
    "sortie.trackers.jira.settings",
    "sortie.trackers.linear.settings_check",
    "sortie.web.server",
)
"""What a daemon and the commands that tests ask most load, with all that these import."""

LONGEST = 1 << 20  # bytes of a request


def serve(asked: socket.socket) -> list[str]:
    """Start what is asked for until nobody asks any more. Return, as a program, its arguments."""
    ends: dict[int, tuple[int, int]] = {}
    poll = select.poll()
    poll.register(asked, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd != asked.fileno():
                poll.unregister(fd)
                os.close(fd)
                pid, end = ends.pop(fd)
                tell(end, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                os.close(end)
                continue
            request, given, _, _ = socket.recv_fds(asked, LONGEST, 4)
            if not request:
                sys.exit()
            pid = os.fork()
            if pid == 0:
                argv, cwd, env = json.loads(request)
                become(given, [asked.detach(), *(fd for pair in ends.items() for fd in flat(pair))])
                os.chdir(cwd)
                os.environ.clear()
                os.environ.update(env)
                return list(argv)
            for one in given[:3]:
                os.close(one)
            tell(given[3], pid)
            looked_at = os.pidfd_open(pid)
            ends[looked_at] = (pid, given[3])
            poll.register(looked_at, select.POLLIN)


def flat(pair: tuple[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the descriptors that are kept for a program that runs."""
    fd, (_, end) = pair
    return fd, end


def tell(fd: int, number: int) -> None:
    """Write a line, though nobody may read it."""
    try:
        os.write(fd, b"%d\n" % number)
    except BrokenPipeError:
        pass


def become(given: list[int], others: list[int]) -> None:
    """Have these three streams, and none of the descriptors of the process that was forked."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()
    for number, fd in enumerate(given[:3]):
        os.dup2(fd, number)
    for fd in (*given, *others):
        os.close(fd)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - they stay open to the end
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which is for who asks
    connection = socket.socket(fileno=int(sys.argv[1]))
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("sortie.web.dashboard.painter").Painter(tuple)  # compiles templates
    gc.freeze()
    sys.argv = serve(connection)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from sortie.cli import main

    main()
