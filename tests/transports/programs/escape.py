"""A program whose child leaves its parent, its session and its group; see ``main``."""

import os
import signal
import subprocess
import sys
from pathlib import Path

STAYER = str(Path(__file__).with_name("stay.py"))


def main(words: list[str]) -> None:
    """Start a process that stays, print its pid, and stay or exit.

    ``fork`` lets its parent die; ``ignore`` makes it ignore SIGTERM; ``hold`` leaves it our
    stdout; ``cleared`` takes its environment away; ``away`` its directory; ``exit`` exits with
    status 3 afterwards, ``tree`` makes it three processes deep.
    """
    told, tell = os.pipe()
    if "fork" not in words or os.fork() == 0:
        subprocess.Popen(
            [sys.executable, STAYER, str(tell), *words],
            env={} if "cleared" in words else None,
            cwd="/" if "away" in words else None,
            stdin=subprocess.DEVNULL,
            stdout=None if "hold" in words else subprocess.DEVNULL,
            stderr=None if "hold" in words else subprocess.DEVNULL,
            pass_fds=(tell,),
            start_new_session=True,
        )
        if "fork" in words:
            os._exit(0)
    else:
        os.wait()
    os.close(tell)
    with os.fdopen(told) as answer:
        pids = answer.read().split()
    os.write(1, " ".join(pids).encode() + b"\n")
    if "exit" in words:
        os.write(1, b"last words")
        sys.exit(3)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
