"""YAML text becomes nodes by the rules of YAML 1.2, and dangerous text becomes an error."""

from __future__ import annotations

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


def test_aliases_that_multiply_are_refused_without_being_followed() -> None:
    """A file of a few hundred bytes cannot stand for billions of values."""
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    long = "s: &s " + "x" * 50_000 + "\nl: [*s, *s, *s]"

    with pytest.raises(Fault, match="aliases stand for more than"):
        parse("\n".join(rows))
    with pytest.raises(Fault, match="aliases stand for more than"):
        parse(long)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_nodes_or_a_fault(text: str) -> None:
    """No text makes the parser fail in another way."""
    root: Node | None = None

    with suppress(Fault):
        root = parse(text)

    assert root is None or root.end <= len(text) + 1
