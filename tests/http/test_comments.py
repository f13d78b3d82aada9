"""Comments that are made once."""

from __future__ import annotations

import pytest

from sortie.http.comments import (
    OnceOnly,
    fitted,
    harmless_mentions,
    is_marked,
    key_in,
    marked,
    without_mark,
)
from sortie.model import LostAnswer, TrackerError, TrackerErrorKind


@pytest.mark.parametrize(
    "key", ["run-1:dispatch", "0190-ab:failure", "a --> b", "a--b", "ö x", "-->", "x" * 500]
)
def test_a_mark_is_found_again_and_seen_by_nobody(key: str) -> None:
    """Whatever the key is made of, it cannot end the mark."""
    body = marked("Done.\n\n- yes", key)

    assert is_marked(body, key)
    assert is_marked(body + "\n", key)
    assert not is_marked(body, "another")
    assert without_mark(body) == "Done.\n\n- yes"
    assert body.count("-->") == 1


def test_other_comments_are_left_as_they_are() -> None:
    """Also where a mark stands in the middle of one."""
    for body in ("", "hello", "<!-- note -->", "<!-- sortie:a --> and more", "\n\n x \n"):
        assert without_mark(body) == body
        assert key_in(body) is None
    assert marked("hello", None) == "hello"


def lost() -> LostAnswer:
    """Return that an answer did not come."""
    return LostAnswer(TrackerErrorKind.UNAVAILABLE, "no answer")


class Place:
    """Where comments are made; ``arrives`` and ``answers`` say what becomes of the next one."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.looks = 0
        self.arrives = True
        self.error: TrackerError | None = None
        self.once = OnceOnly()

    async def make(self, key: str | None) -> None:
        """Make a comment, or look for it."""

        async def post() -> None:
            if self.arrives and key is not None:
                self.made.append(key)
            if self.error is not None:
                raise self.error

        async def is_there() -> bool:
            self.looks += 1
            return key in self.made

        await self.once.make(key, post, is_there)


async def test_a_first_try_needs_no_look() -> None:
    """One request a comment, as long as all goes well."""
    place = Place()

    await place.make("a")
    await place.make("b")

    assert (place.made, place.looks) == (["a", "b"], 0)


async def test_a_lost_answer_is_looked_for() -> None:
    """A comment that arrived is there, and is not made again."""
    place = Place()
    place.error = lost()

    await place.make("a")

    assert (place.made, place.looks) == (["a"], 1)


async def test_a_lost_comment_is_looked_for_before_it_is_made_again() -> None:
    """It may have arrived late; one that has not is made."""
    place = Place()
    place.error, place.arrives = lost(), False
    for key in ("late", "never"):
        with pytest.raises(LostAnswer):
            await place.make(key)
    place.made.append("late")
    place.error, place.arrives = None, True

    await place.make("late")
    await place.make("never")

    assert place.made == ["late", "never"]


async def test_a_refusal_is_no_lost_answer() -> None:
    """Nothing was made, and nothing is looked for."""
    place = Place()
    place.error, place.arrives = TrackerError(TrackerErrorKind.INVALID, "too long"), False
    with pytest.raises(TrackerError):
        await place.make("a")

    assert place.looks == 0


@pytest.mark.parametrize(
    ("body", "harmless"),
    [
        ("@ann", "@\u200bann"),
        ("(@ann, @team/x)", "(@\u200bann, @\u200bteam/x)"),
        ("ann@example.org", "ann@example.org"),
        ("`@decorator`", "`@decorator`"),
        ("a @ b", "a @ b"),
        ("```\n@property\n```\n@ann", "```\n@property\n```\n@\u200bann"),
        ("a\n\n    @x\n\n@ann", "a\n\n    @x\n\n@\u200bann"),
        ("`a @b` @ann", "`a @b` @\u200bann"),
        ("`a @ann", "`a @\u200bann"),
        ("- a\n  ```\n  @x\n\n@ann", "- a\n  ```\n  @x\n\n@\u200bann"),
        ("a\r\n```\r\n@x\r\n```\r\n@ann", "a\r\n```\r\n@x\r\n```\r\n@\u200bann"),
    ],
)
def test_a_name_calls_nobody(body: str, harmless: str) -> None:
    """Addresses and code stay as they are."""
    assert harmless_mentions(body) == harmless


def test_a_cut_makes_no_code_call_anybody() -> None:
    """A text is cut before its names are made harmless, and fits all the same."""
    body = "x" * 900 + " `" + " @ann" * 40 + "`"

    text = fitted(body, 1000, harmless_mentions, len)

    assert len(text) <= 1000
    assert "@ann" not in text
    assert fitted("`@ann` @ann", 1000, harmless_mentions, len) == "`@ann` @\u200bann"


def test_a_long_text_is_cut_with_a_note() -> None:
    """It fits, and says that there is more."""
    cut = fitted("x" * 1000, 100, str, len)

    assert len(cut) <= 100
    assert "shortened" in cut
    assert fitted("x" * 100, 100, str, len) == "x" * 100
