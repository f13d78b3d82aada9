"""Notes: text that GitLab takes for nothing but text, and back.

A line of a note that begins with ``/close`` closes the issue, and ``@all`` writes to everybody.
What agents say is no order to GitLab. A backslash before the slash is Markdown for the slash
itself; a space of no width after the ``@`` is not seen. Addresses of mail call nobody, and what
stands in code calls nobody either.

Rule 1: whatever a text holds, none of its lines begins with a slash once it is harmless.
Rule 2: what was made harmless can be read back as it was, but for its line ends.
"""

from __future__ import annotations

import re

from sortie.http.markdown_code import outside_code

GITLAB_NOTE_LIMIT = 1_000_000
"""Characters of a note; GitLab refuses a longer one."""

_GAP = "\u200b"

_INVISIBLE = (
    "\x00-\x09\x0b-\x20\x7f-\xa0\xad\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
)
"""What may stand before a slash without being seen, or may be dropped by whoever reads the text."""

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_COMMAND = re.compile(rf"^([{_INVISIBLE}]*\\*)(?=/)", re.MULTILINE)
_ESCAPED = re.compile(rf"^([{_INVISIBLE}]*\\*)\\(?=/)", re.MULTILINE)
_MENTION = re.compile(rf"(?<![A-Za-z0-9_])@({_GAP}*)(?=\w)")
_SPACED = re.compile(rf"(?<![A-Za-z0-9_])@{_GAP}({_GAP}*)(?=\w)")


def harmless(text: str) -> str:
    """Return a text as a note in which nothing is an order or calls anybody.

    Line ends become ``\\n``, and control characters are left out.
    """
    clean = _UNWANTED.sub("", _LINE_ENDS.sub("\n", text))
    return _outside_code(_COMMAND.sub(r"\1\\", clean), _MENTION, rf"@{_GAP}\1")


def original(note: str) -> str:
    """Return the text that ``harmless`` made a note of."""
    return _ESCAPED.sub(r"\1", _outside_code(note, _SPACED, r"@\1"))


def _outside_code(text: str, pattern: re.Pattern[str], by: str) -> str:
    return outside_code(text, lambda part: pattern.sub(by, part)) if "@" in text else text
