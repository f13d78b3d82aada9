"""What an agent says in pieces, put together into lines for people; pure."""

from __future__ import annotations

from collections.abc import Callable

from sortie.lines import clean_line
from sortie.model.texts import UNUSABLE, start_of
from sortie.model.turns import NOTIFICATION_LIMIT, Notification

_KEPT = 16 * 1024
"""Characters of a line that are kept until it ends."""

_LONGEST_WORD = 1024


class Texts:
    """Joins the pieces of a message and gives its lines, one notification for each batch.

    Rule: no secret leaves here, also where it came in several pieces.
    """

    def __init__(self, redacted: Callable[[str], str]) -> None:
        self._redacted = redacted
        self._line = ""
        self._source: tuple[str, str | None] | None = None

    def add(self, mark: str, message_id: str | None, piece: str) -> list[Notification]:
        """Take a piece of a message; ``mark`` stands before each of its lines."""
        done = [] if self._source == (mark, message_id) else self.flush()
        self._source = (mark, message_id)
        *complete, rest = piece.split("\n")
        for each in complete:
            self._keep(each)
            done += self._take(mark)
        self._keep(rest)
        return _joined(done)

    def flush(self) -> list[Notification]:
        """Return the line that has no end yet: something else comes."""
        done = self._take(self._source[0]) if self._source else []
        self._source = None
        return done

    def clean(self, text: str, limit: int = NOTIFICATION_LIMIT) -> str:
        """Return a text as it may be shown, on one line."""
        words = " ".join(clean_line(start_of(text, 8 * limit).replace("\n", " ")).split())
        return start_of(UNUSABLE.sub("\ufffd", words), limit, self._redacted)

    def _keep(self, piece: str) -> None:
        if (room := _KEPT - len(self._line)) > 0:
            self._line += piece[:room]

    def _take(self, mark: str) -> list[Notification]:
        kept, self._line = self._line, ""
        line = self.clean(kept)
        if not line:
            return []
        message, text = start_of(mark + line, NOTIFICATION_LIMIT), mark + self._whole(kept)
        return [Notification(message=message, text=None if text == message else text)]

    def _whole(self, line: str) -> str:
        """Return a line as it was said, without its last word where more of it was not kept: half
        a secret is not known for one."""
        whole = self._redacted(UNUSABLE.sub("\ufffd", clean_line(line))).rstrip()
        if len(line) < _KEPT:
            return whole
        return f"{whole[: max(whole.rfind(' '), len(whole) - _LONGEST_WORD)]} [cut]"


def _joined(notifications: list[Notification]) -> list[Notification]:
    """Return one notification for all that came together."""
    if len(notifications) < 2:
        return notifications
    text = "\n".join(each.text or each.message for each in notifications)
    return [Notification(message=notifications[-1].message, lines=len(notifications), text=text)]
