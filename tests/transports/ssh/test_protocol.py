"""What a host's script says, told from what is the program's, and answered at most once."""

from __future__ import annotations

import pytest

from sortie.transports.ssh.protocol import WORD_LIMIT, Dialogue, Words, numbers_in

NONCE = "sortie-00"
STARTED = b"\1sortie-00 started 41\n"


def everything(dialogue: Dialogue, number: int, *chunks: bytes) -> tuple[bytes, list[str]]:
    """Return what is the program's, and the words for trio."""
    output, words = b"", []
    for chunk in chunks:
        for piece, word in dialogue.hear(number, chunk):
            output += piece
            words += [] if word is None else [word]
    return output, words


def test_go_is_said_once() -> None:
    """A host that says again that it is here gets no second answer, which would be its stdin."""
    dialogue = Dialogue(b"", NONCE)

    assert dialogue.consent("here 1 - ")
    assert not dialogue.consent("here 1 - ")
    assert not dialogue.withdraw()


def test_go_is_not_said_when_it_was_withdrawn() -> None:
    """Who withdraws in time knows that nothing starts, however often they ask."""
    dialogue = Dialogue(b"", NONCE)

    assert dialogue.withdraw()
    assert not dialogue.consent("here 1 - ")
    assert dialogue.withdraw()


@pytest.mark.parametrize("word", ["started 1", "missing here", "hereabouts", ""])
def test_no_other_word_is_answered(word: str) -> None:
    """What refuses or goes on by itself gets no GO."""
    dialogue = Dialogue(b"", NONCE)

    assert not dialogue.consent(word)
    assert dialogue.withdraw()


def test_what_comes_before_the_program_is_noise() -> None:
    """On both pipes; and none of the words is the program's."""
    dialogue = Dialogue(b"", NONCE)

    out = everything(dialogue, 1, b"motd\n\1sortie-00 here 7 - \n", b"more" + STARTED + b"its own")
    err = everything(dialogue, 2, b"warning", b"\1sortie-00 started\nits error")

    assert out == (b"its own", ["here 7 -", "started 41"])
    assert err == (b"its error", [])
    assert dialogue.noise == b"motd\nmorewarning"


def test_words_come_in_any_pieces() -> None:
    """A pipe keeps no lines together."""
    said = b"motd\1sortie-00 here 7 - \n" + STARTED + b"\1sortie-00x\1"
    dialogue = Dialogue(b"", NONCE)

    output, words = everything(dialogue, 1, *(said[at : at + 1] for at in range(len(said))))
    output += b"".join(chunk for _, chunk in dialogue.close())

    assert (output, words) == (b"\1sortie-00x\1", ["here 7 -", "started 41"])


def test_a_program_may_say_what_looks_like_a_word() -> None:
    """Once it has started, its stdout is passed on as it is."""
    dialogue = Dialogue(b"", NONCE)

    assert everything(dialogue, 1, STARTED, STARTED) == (STARTED, ["started 41"])


def test_what_could_have_begun_a_word_is_not_lost() -> None:
    """It is the program's when nothing more comes, unless the program never began."""
    dialogue = Dialogue(b"", NONCE)
    everything(dialogue, 2, b"\1sortie-00 started\n", b"end\1sor")
    everything(dialogue, 1, b"\1sor")

    assert [one for one in dialogue.close() if one[1]] == [(2, b"\1sor")]


@pytest.mark.parametrize(("last", "left"), [(b"gone", []), (b"gone 12 -30 x", [12, -30])])
def test_the_last_word_names_who_stays(last: bytes, left: list[int]) -> None:
    """It comes on stderr, behind what the program said there, and is not the program's."""
    dialogue = Dialogue(b"", NONCE)
    everything(dialogue, 2, b"\1sortie-00 started\n")
    assert dialogue.gone is None

    assert everything(dialogue, 2, b"bye\1sortie-00 " + last + b"\n") == (b"bye", [])
    assert dialogue.gone == left


def test_it_is_complete_when_both_pipes_have_the_last_word() -> None:
    """Behind it nothing of the program can come on that pipe; on the other one it still can."""
    dialogue = Dialogue(b"", NONCE)
    everything(dialogue, 1, STARTED)
    everything(dialogue, 2, b"\1sortie-00 started\n")

    first = everything(dialogue, 2, b"\1sortie-00 gone \n")
    before = dialogue.is_complete
    second = everything(dialogue, 1, b"the rest", b"\1sortie-00 go", b"ne \n")

    assert (first, before) == ((b"", []), False)
    assert (second, dialogue.is_complete) == ((b"the rest", []), True)


def test_a_host_that_only_says_words_fills_no_memory() -> None:
    """More words than our script has are not kept for anybody."""
    dialogue = Dialogue(b"", NONCE)

    _, words = everything(dialogue, 1, b"\1sortie-00 send\n" * 10_000)

    assert len(words) < 100


def test_noise_is_bounded() -> None:
    """A login that never stops to talk fills no memory."""
    dialogue = Dialogue(b"", NONCE)
    for _ in range(100):
        everything(dialogue, 1, bytes(10_000))

    assert len(dialogue.noise) == 64 * 1024


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
