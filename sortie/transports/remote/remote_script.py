"""One of our scripts as it runs on a host, and the messages that it says."""

from __future__ import annotations

import trio

from sortie.model import HostError, HostTrouble, TransportError
from sortie.model.texts import end_of
from sortie.transports.remote.channel import Channel
from sortie.transports.remote.protocol import HERE, ScriptOutput

REPLY_LIMIT = 64 * 1024
"""Bytes that stand before a message at most, where the caller gives no other limit."""

_NOISE_KEPT = 64 * 1024  # bytes of what a login says before our script
_NOISE_SHOWN = 500  # characters of it
_FLOOD = 4 * 1024 * 1024  # bytes of anything but an answer that are listened to
_ABANDON_BOUND = 2.0  # seconds


class RemoteScript:
    """One of our scripts as it runs on a host; ``attempt`` says what for.

    Where ``is_over`` is set, it need not be ended: it has ended, or ends by other means.
    ``is_idle`` says that it is a shell which has answered, and works on nothing.
    """

    def __init__(self, host: str, attempt: str, channel: Channel, nonce: str) -> None:
        self.channel = channel
        self.attempt = attempt
        self.begun = False
        self.here = ""  # what it said of itself
        self.is_over = False
        self.is_idle = False
        self._host = host
        self.nonce = nonce
        self._noise = b""
        self._floods = False

    async def begin(self) -> bool:
        """Wait until the script says that it is here; return whether it has before it ended.

        May be called again where it was cancelled.
        """
        while not self.begun and (found := await self.next()) is not None:
            name, _, self.here = found[1].partition(" ")
            self.begun = name == HERE
        return self.begun

    async def next(self, limit: int = REPLY_LIMIT) -> tuple[bytes, str] | None:
        """Return the bytes before the next message and that message, or None where none comes.

        Raises HostError where there are more than ``limit`` bytes.
        """
        said = bytearray()
        heard = 0
        while (item := await self.channel.receive()) is not None:
            stream, before, message = item
            if self.begun and stream:
                said += before
            else:
                self._add_noise(before)
            heard += len(before)
            if len(said) > limit or heard > limit + _FLOOD:
                raise self._flood()
            if message is not None:
                return bytes(said), message
        self._add_noise(bytes(said))
        return None

    async def verdict(self, limit: int = REPLY_LIMIT) -> tuple[str, str, bytes]:
        """Return the first word of the next message, the rest of its line, and the at most
        ``limit`` bytes before it.

        Raises TransportError where there is none.
        """
        found = await self.next(limit)
        if found is None:
            raise self.silence()
        verdict, _, rest = found[1].partition(" ")
        return verdict, rest, found[0]

    async def end(self) -> None:
        """End the script's stdin, which it watches, or kill it where it does not, and wait a moment
        until it is gone."""
        if self.is_over:
            return
        self.channel.write_eof()
        if self._floods or not self.begun:
            self.channel.kill()
        with trio.move_on_after(_ABANDON_BOUND, shield=True):
            while await self.channel.receive() is not None:
                pass

    @property
    def noise(self) -> bytes:
        """What was said that is neither an answer nor ours.

        A login may repeat what it is given: what follows the nonce could show the script's secrets.
        """
        return self._noise.partition(self.nonce.encode())[0]

    def silence(self, status: str = "") -> TransportError:
        """Return the error for an answer that did not come, or ended with that status."""
        if self.channel.lost is not None:
            return self.channel.lost
        heard = end_of(self.noise.decode("utf-8", "replace").strip(), _NOISE_SHOWN) or "nothing"
        return HostError(
            HostTrouble.UNREACHABLE,
            f"could not {self.attempt}: the shell of host {self._host} gave no answer"
            f" (exit {status or self.channel.exit_status or self.channel.exit_signal})"
            f" and said: {heard}",
        )

    def _flood(self) -> HostError:
        self._floods = True
        return HostError(
            HostTrouble.UNREACHABLE,
            f"could not {self.attempt}: host {self._host} did not stop to talk; look at what its"
            " login files (.bashrc and the like) and its /bin/sh print",
        )

    def _add_noise(self, chunk: bytes) -> None:
        self._noise += chunk[: _NOISE_KEPT - len(self._noise)]


class LentShell:
    """A shell that answers questions and runs ``script`` instead, until it is taken back."""

    def __init__(self, shell: RemoteScript, script: RemoteScript) -> None:
        self.shell = shell
        self.script = script
        self._is_back = False

    def dismiss(self, word: bytes) -> None:
        """Write the last word to the script, after which its shell says its end."""
        self.shell.channel.stop_beating()
        self.shell.channel.parser = ScriptOutput(self.shell.nonce)
        self.shell.channel.write(word)

    async def await_back(self) -> None:
        """Wait until its end was said."""
        while (found := await self.shell.next()) is not None:
            if found[1].startswith("end "):
                self.shell.is_idle = self.shell.channel.is_empty
                self._is_back = True
                return

    def close(self) -> None:
        """End the shell, unless it is back."""
        if not self._is_back:
            self.shell.channel.abort()
