"""A service manager's end of the notification socket."""

from __future__ import annotations

import socket
from pathlib import Path


class ServiceSocket:
    """A datagram socket at a path, or an abstract one, that keeps what it is told."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address.replace("@", "\0", 1))
        self._socket.setblocking(False)
        self.told: list[str] = []

    @classmethod
    def below(cls, folder: Path) -> ServiceSocket:
        """Return one at a path."""
        return cls(str(folder / "notify"))

    def lines(self) -> list[str]:
        """Return the assignments so far, in their order."""
        while True:
            try:
                self.told.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return [line for message in self.told for line in message.split("\n")]

    def news(self) -> list[str]:
        """Return the assignments since the last look."""
        known = len(self.lines())
        self.told, lines = [], self.lines()
        assert known == len(lines)
        return lines

    def close(self) -> None:
        """Close it, so that nobody listens any more."""
        self._socket.close()
