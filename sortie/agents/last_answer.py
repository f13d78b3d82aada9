"""The last message of an agent in a turn, put together from its parts; pure."""

from __future__ import annotations

from sortie.lines import strip_escapes

LAST_ANSWER_LIMIT = 64 * 1024
"""Characters of an answer that are kept; the page that shows it cuts it further."""


class LastAnswer:
    """Collects the last message of a turn; ``text`` is "" where nothing was said."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._message: str | None = None
        self._is_open = False

    @property
    def text(self) -> str:
        """What was said, without escape sequences and blank lines around it."""
        return strip_escapes("".join(self._parts)[:LAST_ANSWER_LIMIT]).strip()

    def add(self, text: str, message: str | None = None, joint: str = "") -> None:
        """Take a part of a message, which ``message`` names where the agent numbers its messages.

        ``joint`` stands between it and the part before.
        """
        if self._is_open and message == self._message:
            if self._size < LAST_ANSWER_LIMIT:
                self._parts += (joint, text)
                self._size += len(joint) + len(text)
        elif text.strip():
            self._parts, self._size = [text], len(text)
            self._message, self._is_open = message, True

    def close(self) -> None:
        """Let what is said next be another message."""
        self._is_open = False
