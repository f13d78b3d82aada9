"""Text of agents in GitLab's notes."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sortie.http.comments import key_in, marked, without_mark
from sortie.http.gitlab_notes import harmless, original

WORDS = (
    *("/close", " /close", "\t/label ~x", "\\/close", "```", "`", ">>>", "<p>", "</p>", "a", ""),
    *("@all", "\xe9@all", "a@b.c", "@\u200ball", "\u200b/close", "\ufeff/close", "x /close", "/"),
)
LINES = st.lists(
    st.sampled_from(WORDS),
    max_size=12,
)
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x0b", "\x85", "\n\r", "\x00\n"])
TEXTS = st.one_of(
    st.text(max_size=60),
    st.builds(lambda end, lines: end.join(lines), ENDS, LINES),
    st.text(alphabet="/@\\ \t\r\n\x0b\x0c\x1c\x85\u2028\u2029\u200b\ufeffab`~\x00", max_size=40),
)


def seen_by_gitlab(note: str) -> list[str]:
    """Return the lines of a note as whoever reads it may split and clean them."""
    bare = re.sub(r"[\r\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\ufeff]", "", note)
    return [line.strip() for text in (note, bare) for line in text.splitlines()]


@given(TEXTS)
@example("text\r/close\rtext")
@example("\x00/close")
@example("```\n/close\n```")
def test_no_line_is_an_order(text: str) -> None:
    """However lines are ended or cleaned, none begins with a slash; also not inside of code, whose
    ends GitLab sees elsewhere than others do."""
    assert not [line for line in seen_by_gitlab(harmless(text)) if line.startswith("/")]


def read_as_text(note: str) -> str:
    """Return what of a note is no code, as a parser of Markdown reads it."""
    parts: list[str] = []
    for token in MarkdownIt("commonmark").parse(note):
        children = token.children or []
        parts += ["`" if c.type == "code_inline" else c.content or " " for c in children]
        parts.append(token.content if token.type == "html_block" else "\n")
    return "".join(parts)


@given(TEXTS)
@example("`@all")
@example("``@all`")
@example("\\`@all`")
@example("- ```\n@all")
@example("- a\n  ```\n  @b\n\n@all")
@example("<pre>\n```\n@all\n```\n</pre>")
@example("> `a\n> @all` @b")
def test_nobody_is_called(text: str) -> None:
    """No at sign that begins a word has a name right behind it, but in code, which calls nobody."""
    assert not re.search(r"(?<![A-Za-z0-9_])@\w", read_as_text(harmless(text)))


@pytest.mark.parametrize(
    "code",
    [
        "```py\n@property\ndef a(self): ...\n```",
        "~~~\n@all\n\n@b\n~~~",
        "text\n\n    @decorator\n    def f(): ...",
        "- do\n\n  ```\n  @x\n  ```",
        "> ```\n> @x\n> ```",
        "```\n@never.closed",
        "use `@cache` and ``a `@b` ``",
    ],
)
def test_code_stays_as_it_is(code: str) -> None:
    """A decorator in a block or a span of code gets no invisible sign; what is around it does."""
    assert harmless(f"@ann\n\n{code}") == f"@\u200bann\n\n{code}"


@given(TEXTS)
def test_what_was_made_harmless_can_be_read_as_it_was(text: str) -> None:
    """But for line ends and control characters, which are no text."""
    clean = re.sub(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", "\n", text)
    clean = re.sub(r"[\x00-\x08\x0e-\x1b\x1f\x7f]", "", clean)

    assert original(harmless(text)) == clean


@given(TEXTS, st.text(alphabet="abc0-:./ ", min_size=1, max_size=30))
def test_a_mark_is_found_and_taken_off(text: str, key: str) -> None:
    """Whatever the text holds, also a mark of its own."""
    note = marked(harmless(text), key)

    assert key_in(note) is not None
    assert without_mark(note).rstrip() == harmless(text).rstrip() or "<!-- sortie:" in text


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("/close", "\\/close"),
        ("  /close", "  \\/close"),
        ("a\n/usr/bin/env: not found\n", "a\n\\/usr/bin/env: not found\n"),
        ("see a/b and /c", "see a/b and /c"),
        ("ask @ann or ann@example.org", "ask @\u200bann or ann@example.org"),
        ("\\/close", "\\\\/close"),
    ],
)
def test_text_stays_readable(text: str, note: str) -> None:
    """A backslash stands before the slash, which Markdown does not show."""
    assert harmless(text) == note
