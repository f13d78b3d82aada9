"""An agent that starts whatever could escape the end of its run; see ``main``."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

STAYER = str(Path(__file__).with_name("stay.py"))
PATIENCE = 120.0
PAUSE = 0.003


def main(link: str, word: str, *words: str) -> None:
    """Start these, say ``ready``, and stay, or exit with ``exit`` among the words.

    Each has ``word`` among its arguments and ignores SIGTERM: a process in a session of its own; an
    orphan; one that ``env -i setsid -f`` has started in /; an orphan without environment, limits
    and directory; and without environment and limits a chain of processes that live for 3 ms each,
    and write to ``link``.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "chain" in words:
        chain(link)
    null = os.open(os.devnull, os.O_RDWR)
    os.set_inheritable(null, True)
    stay = [sys.executable, STAYER, str(null), "ignore", word]
    subprocess.Popen(stay, start_new_session=True, pass_fds=(null,), stdin=null, stdout=null)
    orphan(null, stay, dict(os.environ))
    shell = "trap '' TERM; while :; do sleep 0.3; done"
    daemon = f'cd /; exec env -i setsid -f sh -c "{shell}" {word} <&- >&- 2>&-'
    subprocess.run(["sh", "-c", daemon], check=True)
    orphan(null, stay, {}, directory="/")
    orphan(null, [sys.executable, __file__, link, word, "chain"], {})
    while not os.path.exists(link):
        time.sleep(PAUSE)
    print("ready", flush=True)
    while "exit" not in words:
        signal.pause()


def orphan(null: int, argv: list[str], env: dict[str, str], directory: str = ".") -> None:
    """Start a program that has no parent; without an environment it has no limits either."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.chdir(directory)
            if not env:
                lift_limits()
            os.execve(argv[0], argv, env)
        os._exit(0)
    os.wait()


def lift_limits() -> None:
    """Take away what a limit could mark."""
    for limit in (resource.RLIMIT_RSS, 10):  # the second is that on file locks
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (hard, hard))


def chain(link: str) -> None:
    """Be one process after the other, for a while or as long as the link can be written."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        with open(link, "w") as file:
            file.write(str(os.getpid()))
        if os.fork():
            os._exit(0)
        os.setsid()
        time.sleep(PAUSE)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
