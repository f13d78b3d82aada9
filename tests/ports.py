"""Ports for servers that tests start by number."""

from __future__ import annotations

import random
import socket

# Below the kernel's range for outgoing connections, of which other tests make many at once.
_LOWEST, _HIGHEST = 10240, 32767
_CHANCE = random.SystemRandom()  # not seeded alike in all processes of a test run


def free_port() -> int:
    """Return a loopback port that nobody had a moment ago, and that the kernel gives to nobody."""
    while True:
        port = _CHANCE.randint(_LOWEST, _HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
