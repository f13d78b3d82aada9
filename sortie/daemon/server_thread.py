"""A thread with a connection of its own to a PostgreSQL server, which does what is due in rounds.

Rule 1: a round begins when something is asked for, when the server tells of something, or after the
pause that the round before returned.
Rule 2: after an error the connection is made anew. A server that says nothing is given up by
another thread, which looks now and then.
"""

from __future__ import annotations

import select
import socket
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any

import psycopg

from sortie.model import StoreError
from sortie.resources.lease import boot_time
from sortie.store.postgres_address import PostgresAddress
from sortie.store.postgres_connection import PostgresConnection

ANSWER_LIMIT = 4.0
"""Seconds after which a server that does not answer is given up, and connected to anew."""

RETRY_PAUSE = 0.5
"""Seconds after a failure."""


class ServerThread(ABC):
    """``connection`` is the thread's own. Methods without an underscore are for other threads."""

    def __init__(self, name: str, address: PostgresAddress) -> None:
        self.address = address
        self.connection = PostgresConnection(address)
        self.guard = threading.Lock()
        self._begun_session = 0
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._busy_since: float | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End; blocks for some seconds at most."""
        self._closing = True
        self.wake()
        self._thread.join(ANSWER_LIMIT)
        self.connection.give_up()
        self._thread.join(ANSWER_LIMIT)

    def wake(self) -> None:
        """Have a round begin now."""
        with suppress(BlockingIOError):
            self._waker.send(b"+")

    def give_up_silent_server(self) -> None:
        """Connect anew where the server has not answered for a while."""
        since = self._busy_since
        if since is not None and boot_time() - since > ANSWER_LIMIT:
            self.connection.give_up()

    def _work(self) -> None:
        while not self._closing:
            pause = RETRY_PAUSE
            try:
                self._busy_since = boot_time()
                self._ensure_session()
                pause = self._round()
            except (psycopg.Error, StoreError, OSError) as exc:
                self.connection.drop()
                self._fail(exc)
            finally:
                self._busy_since = None
            self._sleep(pause)
        with suppress(psycopg.Error, StoreError, OSError):
            self._end()
        self.connection.drop()

    def _ensure_session(self) -> None:
        self.connection.live()
        if self._begun_session != self.connection.session:
            self._begin_session()
            self._begun_session = self.connection.session

    def _forget_session(self) -> None:
        """Begin the session anew in the next round, with the same connection."""
        self._begun_session = 0

    def _sleep(self, pause: float) -> None:
        """Wait for a wake-up, for what the server tells, or for some seconds."""
        sources: list[Any] = [self._woken]
        if not self.connection.is_lost:
            sources.append(self.connection.live().fileno())
        with suppress(OSError, ValueError, psycopg.Error):
            select.select(sources, [], [], pause)
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    @abstractmethod
    def _begin_session(self) -> None:
        """Make a new connection ready, or one whose session was forgotten."""

    @abstractmethod
    def _round(self) -> float:
        """Do what is due; return the seconds until the next look."""

    @abstractmethod
    def _fail(self, exc: Exception) -> None:
        """Know that the server cannot be used now."""

    @abstractmethod
    def _end(self) -> None:
        """Do what is left to do when the thread is closed."""
