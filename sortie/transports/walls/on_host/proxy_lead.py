"""Leads connections to a port of a loopback on to a unix socket.

Where another socket has come in the place of the one that a connection was led to, since the link
behind it was lost, that connection is ended: it may be silent and not broken.
"""

import os
import socket
import sys
import threading
from contextlib import suppress

_LOOK_EVERY = 5.0


def listen(port: int) -> socket.socket:
    """Return a socket that listens at a port of the loopback."""
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind(("127.0.0.1", port))
    door.listen(128)
    return door


def lead(door: socket.socket, path: str) -> None:
    """Take connections, for ever."""
    while True:
        with suppress(OSError):
            here, _ = door.accept()
            threading.Thread(target=_serve, args=(here, path), daemon=True).start()


def _serve(here: socket.socket, path: str) -> None:
    with here, socket.socket(socket.AF_UNIX) as there:
        was = _identity(path)
        try:
            there.connect(path)
        except OSError:
            return
        ways = ((here, there), (there, here))
        threads = [threading.Thread(target=_move, args=one, daemon=True) for one in ways]
        for one in threads:
            one.start()
        for one in threads:
            while one.is_alive():
                one.join(_LOOK_EVERY)
                if _identity(path) != was:
                    _cut(here, there)


def _move(source: socket.socket, target: socket.socket) -> None:
    try:
        piece = source.recv(65536)
        while piece:
            target.sendall(piece)
            piece = source.recv(65536)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        _cut(source, target)


def _cut(*both: socket.socket) -> None:
    for one in both:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


def _identity(path: str) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime


def main() -> None:
    """Listen, and lead connections in the background."""
    path, port = sys.argv[1], int(sys.argv[2])
    door = listen(port)
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")  # it lives in no workspace
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    lead(door, path)


if __name__ == "__main__":
    main()
