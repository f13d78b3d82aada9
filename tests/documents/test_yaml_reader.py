"""YAML text becomes nodes by the rules of YAML 1.2, and dangerous text becomes an error."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.documents import Fault, Node, Text, YamlRules, read_yaml

RULES = YamlRules(depth=64, values=2**20, strict=False)


def parse(text: str) -> Node | None:
    read = read_yaml(Text("T", text), 0, len(text), RULES)
    for fault in read.faults:
        raise fault
    return read.root


def entry(text: str, key: str = "a") -> Node:
    root = parse(text)
    assert root is not None
    node = root.get(key)
    assert node is not None
    return node


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "N", "1:30", "2026-05-01"])
def test_words_that_yaml_1_1_reads_otherwise_are_strings(word: str) -> None:
    """A state named ``on`` is the string ``on``, and a date is its text."""
    assert entry(f"a: {word}").value == word


@pytest.mark.parametrize("word", ["null", "~", "true", "12", "0o7", "0x1F", "1.5", "-1e3", ".inf"])
def test_words_of_the_core_schema_are_no_strings(word: str) -> None:
    """What YAML 1.2 takes for null, a boolean or a number differs from the same word in quotes."""
    assert not isinstance(entry(f"a: {word}").value, str)
    assert entry(f"a: '{word}'").value == word
    assert entry(f"a: {word}").text == word


def test_a_value_knows_where_its_characters_stand() -> None:
    """Offsets count characters, not bytes, with line ends of two characters among them."""
    text = "# é😀\r\nid: 😀\r\nstate: 'To do' # later\r\n"

    state = entry(text, "state")

    assert text[state.start : state.end] == "'To do'"


def test_an_alias_says_what_its_anchor_says_but_stands_where_it_stands() -> None:
    """The value of an alias is shared, its place is its own."""
    text = "a: &x one\nb: *x\n"

    alias = entry(text, "b")

    assert (alias.text, text[alias.start : alias.end]) == ("one", "*x")


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_line_ends_of_yaml_1_1_are_characters_like_others(sign: str) -> None:
    """YAML 1.2 knows LF and CR only; the parsers of YAML 1.1 must not see the others."""
    assert entry(f"a: b{sign}c\nd: e").value == f"b{sign}c"
    assert entry(f"x: \U000f0000\na: 'b{sign}c'").value == f"b{sign}c"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\na: 2", "a: stands twice"),
        ("a: [", "invalid YAML"),
        ("a: \x1b", "a character that it does not allow"),
        ("a: *b", "has no anchor"),
        ("a: &a [*a]", "inside its own value"),
        ("a: 1\n...\n---\nb: 2", "a second YAML document"),
        ("? [a]\n: b", "a key must be a text"),
        ("[" * 100_000, "nested deeper"),
        ("{a: " * 100_000, "nested deeper"),
        ("- " * 100_000, "nested deeper"),
    ],
)
def test_what_is_not_one_plain_document_is_refused(text: str, problem: str) -> None:
    """Every kind of unusable YAML is a Fault with a reason, the deeply nested ones at once."""
    started = time.monotonic()

    with pytest.raises(Fault) as refused:
        parse(text)

    assert problem in str(refused.value.problem)
    assert refused.value.place.line in (1, 2, 3)
    assert time.monotonic() - started < 30


def test_aliases_that_multiply_are_refused_without_being_followed() -> None:
    """A file of a few hundred bytes cannot stand for billions of values."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    long = "s: &s " + "x" * 50_000 + "\nl: [*s, *s, *s]"

    with pytest.raises(Fault, match="aliases stand for more than"):
        parse("\n".join(rows))
    with pytest.raises(Fault, match="aliases stand for more than"):
        parse(long)


def test_nothing_is_null() -> None:
    """An empty and a null value are the same, an empty string is not."""
    assert entry("a:").value is None
    assert entry("a: ~").value is None
    assert entry("a: ''").value == ""


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_nodes_or_a_fault(text: str) -> None:
    """No text makes the parser fail in another way."""
    root: Node | None = None

    with suppress(Fault):
        root = parse(text)

    assert root is None or root.end <= len(text) + 1
