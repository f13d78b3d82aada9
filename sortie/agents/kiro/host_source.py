"""Kiro's conversations on a host, read there by a small script where the agent would keep them.

The script needs a POSIX shell; for the database of engine v1 also ``sqlite3`` or ``python3``. It
selects the row of one directory, or prints a session's two files, and nothing else.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

import trio

from sortie.agents import SessionParams
from sortie.agents.kiro.sources import CONVERSATION_LIMIT, StoreReading
from sortie.kiro.conversations import Conversation, ConversationError
from sortie.kiro.conversations.latest import STORES, Sight, conversation_from, is_about
from sortie.model import TransportError
from sortie.resources import run_in_thread
from sortie.transports import Script

_OUTPUT_LIMIT = 2 * CONVERSATION_LIMIT + 256 * 1024
"""Two sessions that name the directory, and what is said of them."""

_SMALL = 4096
"""Bytes that are understood at once: less work than to have another thread do it."""

_PLACES = ("XDG_DATA_HOME", "KIRO_HOME")
_LOGIN = ("HOME", "PATH")
_SPECIAL = frozenset(r"\.[]{}()*+?^$|")

_Part = tuple[str, str, str, bytes]


class HostSource:
    """The stores of a host.

    Rule: at most one script runs for a session. A script that takes too long is ended by a task in
    ``nursery``, since the host may be slow; the next script starts after that.
    """

    def __init__(self, params: SessionParams, nursery: trio.Nursery) -> None:
        self._params = params
        self._nursery = nursery
        self._patterns = patterns_of(params.workspace)
        self._run: _ScriptRun | None = None

    async def look(self) -> Sight:
        """Return what is there now."""
        return (await self._ask("look", Sight())).sight

    async def read(self, before: Sight) -> StoreReading:
        """Return what is there now, and what has changed since a look."""
        return await self._ask("read", before)

    async def _ask(self, mode: str, before: Sight) -> StoreReading:
        if self._run is not None:
            await self._run.over.wait()
        nonce = f"sortie-{secrets.token_hex(16)}"
        directory = self._params.workspace
        words = (nonce, str(CONVERSATION_LIMIT), *self._patterns, mode, _lines_of(before))
        self._run = run = _ScriptRun(self._params, words)
        self._nursery.start_soon(run.begin)
        try:
            await run.over.wait()
        finally:
            run.scope.cancel()
        if run.error is not None:
            raise ConversationError(run.error)
        if len(run.output) <= _SMALL:
            return reading_of(run.output, nonce, directory, before)
        return await run_in_thread(reading_of, run.output, nonce, directory, before)


class _ScriptRun:
    """One run of the script, which is ``over`` when it is gone."""

    def __init__(self, params: SessionParams, words: tuple[str, ...]) -> None:
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.output = b""
        self.error: str | None = None
        self._transport = params.transport
        self._script = Script(
            purpose="read Kiro's conversations",
            text=_text(),
            arguments=words,
            cwd=params.workspace,
            env=_environment(params.env),
            limit=_OUTPUT_LIMIT,
        )

    async def begin(self) -> None:
        """Run it and keep what it prints; whatever goes wrong is noted."""
        try:
            with self.scope:
                self.output = await self._transport.run_script(self._script)
        except TransportError as error:
            self.error = str(error)
        finally:
            self.over.set()


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that say where the agent keeps its conversations.

    Those that it has not are empty: the host's login may have them.
    """
    places = {name: given.get(name, "") for name in _PLACES}
    return places | {name: given[name] for name in _LOGIN if name in given}


def patterns_of(directory: str) -> tuple[str, str, str]:
    """Return SQL that is a directory, and regular expressions that find it in sessions of v2 and
    of v3."""
    key = f"CAST(X'{directory.encode(errors='surrogateescape').hex()}' AS TEXT)"
    spelled = (json.dumps(directory), json.dumps(directory, ensure_ascii=False))
    either = "|".join(dict.fromkeys(map(_literal, spelled)))
    return (
        key,
        f'"cwd"[[:space:]]*:[[:space:]]*({either})',
        rf'"workspacePaths"[[:space:]]*:[[:space:]]*\[[^]]*({either})',
    )


def _lines_of(sight: Sight) -> str:
    return "\n".join(f"{store} {version}" for store, version in sight.versions.items())


def reading_of(output: bytes, nonce: str, directory: str, before: Sight) -> StoreReading:
    """Return what the script has printed. Raises ConversationError for any other output."""
    parts = list(_parts(output, nonce))
    if not parts or parts[-1][0] != "end":
        raise ConversationError("the host's answer has no end")
    versions = {store: text for kind, store, text, _ in parts if kind == "at"}
    troubles = {store: text for kind, store, text, _ in parts if kind == "trouble"}
    sight = Sight(versions=versions, troubles=troubles)
    messages = {store: content for kind, store, _, content in parts if kind == "messages"}
    for kind, store, place, content in parts:
        if kind != "content" or store not in sight.changed_since(before):
            continue
        found = _conversation(store, place, directory, content, messages.get(store, b""))
        if found is not None:
            return StoreReading(sight=sight, conversation=found)
    return StoreReading(sight=sight)


def _conversation(
    store: str, place: str, directory: str, content: bytes, messages: bytes
) -> Conversation | None:
    """Return a conversation, None for a session that only names the directory somewhere."""
    if STORES[store] != "v1" and not is_about(store, content, directory):
        return None
    return conversation_from(store, place, directory, content, messages)


def _parts(output: bytes, nonce: str) -> Iterator[_Part]:
    """Yield kind, store, text and content of each part; parts of unknown stores are skipped."""
    for part in output.split(b"\n" + nonce.encode() + b" ")[1:]:
        line, _, content = part.partition(b"\n")
        kind, _, rest = line.decode(errors="surrogateescape").partition(" ")
        store, _, text = rest.partition(" ")
        if kind == "end" or store in STORES:
            yield kind, store, text, content


def _literal(text: str) -> str:
    """Return an extended regular expression that finds a text as it is."""
    return "".join(f"\\{each}" if each in _SPECIAL else each for each in text)


@cache
def _text() -> str:
    """Return the script, without its comments."""
    lines = files(__package__).joinpath("sh", "conversations.sh").read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith("#"))
