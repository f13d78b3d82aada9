"""YAML text becomes nodes by the rules of YAML 1.2, and dangerous text becomes an error."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.trackers.file import yaml_reader
from sortie.trackers.file.nodes import Flaw, Mapping, Node, Scalar, content, is_null


def parse(text: str) -> Node | None:
    return yaml_reader.parse(text)


def value_of(text: str) -> Scalar:
    root = parse(text)
    assert isinstance(root, Mapping)
    value = root.pairs[0][1]
    assert isinstance(value, Scalar)
    return value


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "N", "1:30", "2026-05-01"])
def test_words_that_yaml_1_1_reads_otherwise_are_strings(word: str) -> None:
    """A state named ``on`` is the string ``on``, and a date is its text."""
    root = parse(f"state: {word}")

    assert root is not None
    assert content(root) == [("state", word)]


@pytest.mark.parametrize("word", ["null", "~", "true", "12", "0o7", "0x1F", "1.5", "-1e3", ".inf"])
def test_words_of_the_core_schema_are_no_strings(word: str) -> None:
    """What YAML 1.2 takes for null, a boolean or a number differs from the same word in quotes."""
    plain, quoted = parse(f"a: {word}"), parse(f"a: '{word}'")

    assert plain is not None
    assert quoted is not None
    assert content(plain) != content(quoted)


def test_a_value_knows_where_its_characters_stand() -> None:
    """Offsets count characters, not bytes, with line ends of two characters among them."""
    text = "# é😀\r\nid: 😀\r\nstate: 'To do' # later\r\n"
    root = parse(text)
    assert isinstance(root, Mapping)

    state = root.get("state")

    assert isinstance(state, Scalar)
    assert text[state.start : state.end] == "'To do'"


def test_an_alias_says_what_its_anchor_says_but_stands_where_it_stands() -> None:
    """The value of an alias is shared, its place is its own."""
    text = "a: &x one\nb: *x\n"
    root = parse(text)
    assert isinstance(root, Mapping)

    alias = root.get("b")

    assert isinstance(alias, Scalar)
    assert (alias.text, text[alias.start : alias.end]) == ("one", "*x")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2", "a: stands twice"),
        ("a: [", "not valid YAML"),
        ("a: \x1b", "control characters"),
        ("a: *b", "has no anchor"),
        ("a: &a [*a]", "has no anchor"),
        ("a: 1\n...\n---\nb: 2", "more than one YAML document"),
        ("? [a]\n: b", "a key must be a word"),
        ("[" * 100_000, "nested deeper"),
        ("{a: " * 100_000, "nested deeper"),
        ("- " * 100_000, "nested deeper"),
    ],
)
def test_what_is_not_one_plain_document_is_refused(text: str, problem: str) -> None:
    """Every kind of unusable YAML is a Flaw with a reason, the deeply nested ones at once."""
    started = time.monotonic()

    with pytest.raises(Flaw) as refused:
        parse(text)

    assert problem in refused.value.message
    assert 0 <= refused.value.offset <= len(text)
    assert time.monotonic() - started < 5


def test_aliases_that_multiply_are_refused_without_being_followed() -> None:
    """A file of a few hundred bytes cannot stand for billions of values."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    long = "s: &s " + "x" * 50_000 + "\nl: [*s, *s, *s]"

    with pytest.raises(Flaw, match="aliases stand for more than"):
        parse("\n".join(rows))
    with pytest.raises(Flaw, match="aliases stand for more than"):
        parse(long)


def test_nothing_is_null() -> None:
    """A missing, an empty and a null value are the same, an empty string is not."""
    assert is_null(None)
    assert is_null(value_of("a:"))
    assert is_null(value_of("a: ~"))
    assert not is_null(value_of("a: ''"))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_nodes_or_a_flaw(text: str) -> None:
    """No text makes the parser fail in another way."""
    root: Node | None = None

    with suppress(Flaw):
        root = parse(text)

    assert root is None or root.end <= len(text) + 1
