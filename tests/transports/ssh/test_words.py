"""The words of our scripts among noise and output."""

from __future__ import annotations

import pytest

from sortie.transports.ssh.protocol import WORD_LIMIT, Words, numbers_in


def taken(words: Words, chunks: list[bytes]) -> tuple[bytes, list[str]]:
    """Feed some chunks; return what is no word, and the words."""
    plain, said = b"", []
    for chunk in chunks:
        for before, word in words.feed(chunk):
            plain += before
            if word is not None:
                said.append(word)
    return plain + words.close(), said


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_words_are_found_however_the_bytes_are_cut(size: int) -> None:
    """Whatever arrives together, the same words and the same rest come out."""
    stream = b"noise\1\n\1n\1nonce here 1\nrest\1nonce gone\n\1nonce2 x\n\1nonc"

    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]

    assert taken(Words("nonce"), chunks) == (
        b"noise\1\n\1nrest\1nonce2 x\n\1nonc",
        ["here 1", "gone"],
    )


def test_what_is_no_word_is_not_held_back() -> None:
    """Output goes on at once unless it ends like the beginning of a word."""
    words = Words("nonce")

    first = words.feed(b"all of it")
    second = words.feed(b"but this\1no")
    third = words.feed(b"body\n")

    assert (first, second, third) == (
        [(b"all of it", None)],
        [(b"but this", None)],
        [(b"\1nobody\n", None)],
    )


def test_text_before_a_word_comes_with_it() -> None:
    """What was said first is told first."""
    assert Words("n").feed(b"a\1n x y\nb\1n z\n") == [(b"a", "x y"), (b"b", "z")]


def test_a_word_without_an_end_is_cut() -> None:
    """A host that never ends its line fills no memory, and what follows the line is heard."""
    words = Words("n")
    kept = 0

    chunks = [b"\1n begin ", *[b"x" * 100_000] * 200]
    for chunk in chunks:
        kept += sum(len(word or "") for _, word in words.feed(chunk))
    after = taken(words, [b"end of it\nplain\1n next\n"])

    assert kept == WORD_LIMIT
    assert after == (b"plain", ["next"])


def test_only_numbers_are_taken_for_numbers() -> None:
    """A host may say anything else instead of a pid."""
    said = f"gone 12 -7 --7 \u00b2 \u0663 1_0 {'9' * 5000} 13:4"

    assert numbers_in(said) == [12, -7]
