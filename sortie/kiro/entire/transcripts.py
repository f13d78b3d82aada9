"""What a recorded session holds: the document of Kiro CLI's engine v1, or the one of Kiro IDE.

A session that Kiro keeps in another form is recorded in the form of v1.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sortie.json_rpc import values
from sortie.kiro.conversations.files import milliseconds
from sortie.kiro.conversations.history_v1 import read_document
from sortie.kiro.conversations.records import (
    Conversation,
    ConversationSummary,
    ModelAnswer,
    Record,
    ToolResult,
    ToolUse,
    ToolUsesCancelled,
    UserPrompt,
    final_answer,
    modified_files,
    prompts,
)
from sortie.kiro.entire.repository import EntireError, read_file


def newest_ide_session(root: str, environment: Mapping[str, str]) -> tuple[int, str] | None:
    """Return when Kiro IDE changed its newest session of a directory, in milliseconds, and its
    file; the newest is the one that was begun last by its list of sessions."""
    for folder in _ide_folders(os.path.realpath(root), environment):
        try:
            sessions = json.loads(read_file(os.path.join(folder, "sessions.json")))
        except (OSError, ValueError, RecursionError, EntireError):
            continue
        found = list(_ide_sessions(folder, sessions))
        if found:
            return max(found)[1:]
    return None


def _ide_folders(root: str, environment: Mapping[str, str]) -> Iterable[str]:
    home = environment.get("HOME") or os.path.expanduser("~")
    if sys.platform == "darwin":
        data = os.path.join(home, "Library", "Application Support")
    else:
        data = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    above = os.path.join(
        data, "Kiro", "User", "globalStorage", "kiro.kiroagent", "workspace-sessions"
    )
    plain = base64.b64encode(os.fsencode(root))
    for name in (plain, base64.urlsafe_b64encode(os.fsencode(root)), plain.replace(b"=", b"_")):
        yield os.path.join(above, name.decode().replace("/", "_"))
        yield os.path.join(above, name.decode().rstrip("=").replace("/", "_"))


def _ide_sessions(folder: str, sessions: object) -> Iterator[tuple[int, int, str]]:
    """Yield when each session was begun and last changed, and its file."""
    for session in values.items(sessions):
        identity = values.text(session, "sessionId")
        if identity is None or "/" in identity:
            continue
        path = os.path.join(folder, f"{identity}.json")
        if os.path.isfile(path):
            changed = os.stat(path).st_mtime_ns // 1_000_000
            yield _created(session), changed, path


def _created(session: Mapping[str, Any]) -> int:
    """Return when a session was begun, in milliseconds; 0 where its entry does not say so."""
    date = session.get("dateCreated")
    if isinstance(date, str) and date.isascii() and date.isdecimal():
        date = int(date[:20])
    return milliseconds(date) or 0


EMPTY = b'{"conversation_id":"","history":[]}\n'


class Transcript:
    """A recorded session. ``length`` is how many entries its history has.

    ``cli_version`` is the version of Entire that recorded it, None where that is not told.
    """

    def __init__(self, content: bytes, name: str = "the transcript") -> None:
        try:
            document = json.loads(content or b"{}")
        except (ValueError, RecursionError) as exc:
            raise EntireError(f"{name} is no JSON: {exc}") from None
        if not isinstance(document, dict):
            raise EntireError(f"{name} is no JSON object")
        history = document.get("history")
        entries = history if isinstance(history, list) else []
        self.length = len(entries)
        self.cli_version = values.text(document, "cli_version")
        self._timestamps = [values.text(entry, "user", "timestamp") for entry in entries]
        if any("message" in values.mapping(entry) for entry in entries):
            pairs = [(n, r) for n, entry in enumerate(entries) for r in _of_ide(entry)]
        else:
            summary = ConversationSummary(engine="v1", id="", directory="", place="")
            read = read_document(document, summary)
            pairs = list(zip(read.entry_of, read.records, strict=True))
        self._pairs = pairs

    @classmethod
    def at(cls, path: str) -> Transcript:
        """Return what a file holds; one that is not there is empty. Raises EntireError."""
        try:
            return cls(read_file(path), path)
        except FileNotFoundError:
            return cls(b"")
        except OSError as exc:
            raise EntireError(f"{path} cannot be read: {exc.strerror}") from exc

    def since(self, position: int) -> list[Record]:
        """Return the records of the entries from a position on."""
        return [record for entry, record in self._pairs if entry >= position]

    def entries(self) -> Iterator[tuple[str | None, list[Record]]]:
        """Yield the time and the records of each entry, where the entry has them."""
        records: list[list[Record]] = [[] for _ in self._timestamps]
        for entry, record in self._pairs:
            records[entry].append(record)
        return zip(self._timestamps, records, strict=True)

    def modified_files(self, position: int = 0) -> list[str]:
        """Return the files that were written, each once."""
        return list(modified_files(self.since(position)))

    def prompts(self, position: int = 0) -> list[str]:
        """Return what the user said."""
        return list(prompts(self.since(position)))

    def summary(self) -> str | None:
        """Return the last that the model said."""
        return final_answer(self.since(0))


def _of_ide(entry: object) -> Iterator[Record]:
    """Return the records of an entry of Kiro IDE: a role, and a text or blocks."""
    message = values.mapping(entry, "message")
    content = message.get("content")
    text = _text(content)
    if message.get("role") == "user" and text:
        yield UserPrompt(text=text)
    elif message.get("role") == "assistant" and text:
        yield ModelAnswer(text=text)
    for block in values.items(content):
        match block.get("type"):
            case "tool_use" if (used := values.text(block, "id")) is not None:
                name = values.text(block, "name") or ""
                yield ToolUse(id=used, name=name, input=values.mapping(block, "input"))
            case "tool_result" if (used := values.text(block, "tool_use_id")) is not None:
                failed = block.get("is_error") is True
                said = _text(block.get("content"))
                yield ToolResult(tool_use_id=used, text=said, succeeded=not failed)
            case _:
                pass


def _text(content: object) -> str:
    """Return the text of a content of Kiro IDE: a text or blocks."""
    if isinstance(content, str):
        return content
    blocks = (block for block in values.items(content) if block.get("type") == "text")
    return "\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


def as_document(conversation: Conversation) -> dict[str, Any]:
    """Return a conversation of any engine in the form of engine v1.

    Engine v3 keeps a tool use without an answer before it; it has an entry of its own then.
    """
    entries: list[dict[str, Any]] = []
    user: dict[str, Any] | None = None
    results: list[dict[str, Any]] = []
    for record in conversation.records:
        match record:
            case UserPrompt(text=text):
                _leave(entries, user)
                user, results = {"Prompt": {"prompt": text}}, []
            case ToolResult():
                if not results:
                    _leave(entries, user)
                    user = {"ToolUseResults": {"tool_use_results": results}}
                results.append(_result(record))
            case ToolUsesCancelled(tool_use_ids=ids, prompt=text):
                _leave(entries, user)
                stopped = [{"tool_use_id": i, "content": [], "status": "Error"} for i in ids]
                user = {"CancelledToolUses": {"prompt": text, "tool_use_results": stopped}}
                results = []
            case ModelAnswer(text=text, message_id=identity):
                said = {"Response": {"message_id": identity, "content": text}}
                entries.append({"user": {"content": user}, "assistant": said})
                user, results = None, []
            case ToolUse():
                _add_use(entries, user, record)
                user, results = None, []
            case _:
                pass
    _leave(entries, user)
    return {"conversation_id": conversation.summary.id, "history": entries}


def _leave(entries: list[dict[str, Any]], user: dict[str, Any] | None) -> None:
    """Add the user's last message where no answer followed it."""
    if user is not None:
        entries.append({"user": {"content": user}, "assistant": None})


def _result(record: ToolResult) -> dict[str, Any]:
    status = "Error" if record.succeeded is False else "Success"
    content = [{"Text": record.text}]
    return {"tool_use_id": record.tool_use_id, "content": content, "status": status}


def _add_use(entries: list[dict[str, Any]], user: dict[str, Any] | None, use: ToolUse) -> None:
    """Make the last answer one that has a tool used, or add one where that was not one."""
    if user is not None or not entries or entries[-1]["assistant"] is None:
        entries.append({"user": {"content": user}, "assistant": {"Response": {"content": ""}}})
    assistant = entries[-1]["assistant"]
    said = assistant.pop("Response", None)
    if said is not None:
        assistant["ToolUse"] = {**said, "tool_uses": []}
    names = {"name": use.name, "orig_name": use.name}
    call = {"id": use.id, **names, "args": dict(use.input), "orig_args": dict(use.input)}
    assistant["ToolUse"]["tool_uses"].append(call)


def chunked(content: bytes, size: int) -> list[str]:
    """Return a transcript in pieces of at most ``size`` bytes, each in base64."""
    if size <= 0:
        raise EntireError("--max-size must be more than 0")
    pieces = (content[begin : begin + size] for begin in range(0, len(content), size))
    return [base64.b64encode(piece).decode() for piece in pieces]


def reassembled(chunks: Sequence[object]) -> bytes:
    """Return what was chunked. Raises EntireError for what is no base64."""
    return b"".join(decoded(chunk) for chunk in chunks)


def decoded(text: object) -> bytes:
    """Return bytes from their base64; null is none. Raises EntireError."""
    if text is None:
        return b""
    try:
        if isinstance(text, str):
            return base64.b64decode(text, validate=True)
    except ValueError:
        pass
    raise EntireError("a field that holds bytes is no base64")


def native(root: str, environment: Mapping[str, str]) -> bytes | None:
    """Return the session that Kiro, as CLI or IDE, has changed last in a directory; None: none."""
    from sortie.kiro.conversations import ConversationError, ConversationStores, KiroPlaces

    stores = ConversationStores(KiroPlaces.of(environment), limit=10 * 1024 * 1024)
    newest = stores.newest(root)
    ide = newest_ide_session(root, environment)
    if ide is not None and (newest is None or ide[0] > newest.updated):
        return read_file(ide[1])
    if newest is None:
        return None
    try:
        if newest.engine == "v1":
            return stores.document(newest)
        return json.dumps(as_document(stores.load(newest)), ensure_ascii=False).encode()
    except ConversationError as exc:
        raise EntireError(str(exc)) from exc
