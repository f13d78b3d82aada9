"""Processes each of which starts the next one and exits after some milliseconds; see ``main``."""

import os
import signal
import sys
import time

PAUSE = 0.003
PATIENCE = 60.0


def main(path: str, words: list[str]) -> None:
    """Start a chain, say ``ready``, and stay; with ``exit`` among the words, exit.

    The last link writes to the file at ``path`` again and again while there is one. ``apart`` gives
    each a session of its own. The chain ends by itself after a minute.
    """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    until = time.monotonic() + PATIENCE
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        while time.monotonic() < until:
            with open(path, "w") as file:
                file.write(str(os.getpid()))
            if os.fork():
                os._exit(0)
            if "apart" in words:
                os.setsid()
            time.sleep(PAUSE)
        os._exit(0)
    print("ready", flush=True)
    if "exit" not in words:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
