"""YAML 1.2, within limits."""

from __future__ import annotations

import math
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sortie.documents import Node, yaml_reader
from sortie.documents.scalars import resolve_scalar
from sortie.workflow.front_matter import split_workflow


def tree(text: str) -> Node:
    """Return a front matter that can be read."""
    parts = split_workflow(f"---\n{text}\n---\n", "W")
    assert parts.problems == ()
    assert parts.document is not None
    return parts.document


def refused(text: str) -> list[str]:
    """Return why a front matter is refused."""
    return [str(problem) for problem in split_workflow(f"---\n{text}\n---\n", "W").problems]


SCALARS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "FALSE": False,
    "yes": "yes",
    "off": "off",
    "12": 12,
    "-0": 0,
    "+7": 7,
    "010": 10,
    "0o17": 15,
    "0xFf": 255,
    "0b1": "0b1",
    "1_000": "1_000",
    "1.5": 1.5,
    "-.5e3": -500.0,
    "1e3": 1000.0,
    ".inf": math.inf,
    "-.INF": -math.inf,
    "2024-01-02": "2024-01-02",
    "12:30": "12:30",
    "٣": "٣",
    "9" * 5000: math.inf,
}


@pytest.mark.parametrize("text", SCALARS)
def test_plain_scalars_follow_the_core_schema(text: str) -> None:
    """YAML 1.2 has fewer surprises: yes, dates, sexagesimals and octal zeros are gone."""
    assert resolve_scalar(text) == SCALARS[text]
    assert type(resolve_scalar(text)) is type(SCALARS[text])


def test_values_and_keys_know_their_places() -> None:
    """A value has its place and that of its key; an item its position; quoted text stays text."""
    document = tree('a: "5"\nb:\n  - x\n  - |\n    two\n    lines\n5: 6')

    assert [(key, node.value, placed(node)) for key, node in document.entries().items()] == [
        ("a", "5", ((2, 1), (2, 4), None)),
        ("b", document.entries()["b"].value, ((3, 1), (4, 3), None)),
        ("5", 6, ((8, 1), (8, 4), None)),
    ]
    assert [(node.value, placed(node)) for node in document.entries()["b"].items()] == [
        ("x", (None, (4, 5), 0)),
        ("two\nlines\n", (None, (5, 5), 1)),
    ]
    assert placed(document) == (None, (2, 1), None)


def placed(node: Node) -> tuple[tuple[int, int] | None, tuple[int, int], int | None]:
    """Return line and column of a node's key and of the node, and its index."""
    key = (node.key.place.line, node.key.place.column) if node.key else None
    return key, (node.place.line, node.place.column), node.index


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(12)
)
DEEP = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [*a{i}]\n" for i in range(60))
MANY = "more than 10,000 values, those behind aliases counted each time"

REFUSED = {
    "anchor bomb": (BOMB, [f"W:6:10: {MANY}"]),
    "recursive alias": (
        "a: &a\n  b: [*a]",
        ["W:3:7: the alias *a stands inside its own value"],
    ),
    "unknown alias": ("a: *b", ["W:2:4: the alias *b has no anchor above it"]),
    "depth through aliases": (DEEP, ["W:41:12: nested deeper than 40 levels"]),
    "depth": ("a: " + "[" * 5000, ["W:2:43: nested deeper than 40 levels"]),
    "many values": ("a: [" + "1," * 10_000 + "]", [f"W:2:19999: {MANY}"]),
    "duplicates": (
        "a: {b: 1, b: 2}\nc: [{d: 1,\n d: 2}]\na: 5",
        [
            "W:2:11: a.b: stands twice; first on line 2",
            "W:4:2: c[0].d: stands twice; first on line 3",
            "W:5:1: a: stands twice; first on line 2",
        ],
    ),
    "tags": (
        "a: !!python/object/apply:os.system [id]\nb: !!str 5\nc: [! x]",
        [
            "W:2:4: a: tags such as tag:yaml.org,2002:python/object/apply:os.system "
            "are not accepted; write a plain value",
            "W:3:4: b: tags such as tag:yaml.org,2002:str are not accepted; write a plain value",
            "W:4:5: c[0]: tags such as ! are not accepted; write a plain value",
        ],
    ),
    "merge key": (
        "a: &a {b: 1}\nc:\n  <<: *a",
        ["W:4:3: merge keys (<<) are not part of YAML 1.2; write the keys"],
    ),
    "key is a list": ("? [a]\n: b", ["W:2:3: a key must be a text, not a mapping or a list"]),
    "key is an alias": ("a: &a b\n*a : c", ["W:3:1: a key must be a text, not an alias"]),
    "two documents": ("a: b\n--- c", ["W:3:1: a second YAML document begins here"]),
    "unusable escapes": (
        'a: "\\0"\nb: ["\\ud800"]',
        [
            "W:2:4: a: holds an escape for a character that no text may hold",
            "W:3:5: b[0]: holds an escape for a character that no text may hold",
        ],
    ),
    "escape beyond Unicode": (
        'a: "\\UFFFFFFFF"',
        ["W:2:5: invalid YAML: \\UFFFFFFFF is no character; the last one is \\U0010FFFF"],
    ),
    "directive": (
        "%YAML 1.1\na: b",
        ["W:3:1: invalid YAML: expected '<document start>', but found '<scalar>'"],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    """Each refusal is located, and none of them costs time, memory or the interpreter's stack."""
    text, expected = REFUSED[name]
    begin = time.monotonic()

    found = refused(text)

    assert found == expected
    assert time.monotonic() - begin < 30


@given(st.text(alphabet=st.sampled_from("ab:-[]{}*&!|>'\"#%@,? \n\t\\0~<"), max_size=40))
def test_reading_never_raises(text: str) -> None:
    """Whatever stands between the dashes, there is a document or a problem."""
    parts = split_workflow(f"---\n{text}\n---\n", "W")

    assert parts.document is not None or parts.problems


PLAIN_WORDS = {
    "open list": (
        "a: [b, c\nd: 1",
        "1:4: the list that begins here is not closed with ], or lacks a comma",
    ),
    "open mapping": (
        "a: {b: c\nd: 1",
        "1:4: the mapping that begins here is not closed with }, or lacks a comma",
    ),
    "open quote": ("a: 'b\nc: 1", "1:4: the quote that begins here is not closed"),
    "tab": ("a:\n\tb: 1", "2:1: a tab stands here; lines are indented with blanks only"),
    "two colons": (
        "a: b: c",
        "1:5: a second colon on this line; put a text that holds a colon in quotes",
    ),
    "no colon": ("a: x\nb", "2:1: this line has no colon; a setting is written as key: value"),
    "odd indentation": (
        "a:\n  b: 1\n c: 2",
        "3:2: this line is indented otherwise than those that it belongs to",
    ),
    "below a value": (
        "a: b\n  c: d",
        "2:4: a key cannot stand here: the text above goes on until here; "
        "look at the indentation, and for a colon that is missing",
    ),
    "sign": ("a: @x", "1:4: a text cannot begin with @; put it in quotes"),
    "item among keys": ("a: x\n- b", "2:1: a list cannot go on here, among keys"),
    "item behind a key": (
        "a: - x",
        "1:4: a list cannot begin on the line of its key; write [a, b], or begin a line with it",
    ),
    "closed twice": ("a: [b]]", "1:7: ] closes nothing that is open"),
    "behind a quote": (
        "a: 'x' y",
        "1:8: nothing can follow a closing quote or bracket here; quote the whole text",
    ),
    "no item": ("a: [b,,c]", "1:7: a value is missing before ,"),
    "no character": (
        'a: 1\nb: "x\\U00110000"',
        "2:6: \\U00110000 is no character; the last one is \\U0010FFFF",
    ),
}


@pytest.mark.parametrize("name", PLAIN_WORDS)
def test_what_is_not_understood_is_told_in_plain_words(name: str) -> None:
    """The place is where the mistake began, and no word of the parser's own is needed."""
    text, expected = PLAIN_WORDS[name]
    line, column, message = expected.split(":", 2)

    assert refused(text) == [f"W:{int(line) + 1}:{column}: invalid YAML:{message}"]


def test_without_libyaml_the_same_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML's own parser finds the same values, places and mistakes as libyaml."""
    texts = [text for text, _ in REFUSED.values()] + [text for text, _ in PLAIN_WORDS.values()]
    texts += ["a: {b: , c: [1, x]}\nd:\ne: |\n  f\n", "a: &x [1]\nb: *x", "a: b\u2028c"]
    with_it = [split_workflow(f"---\n{text}\n---\n", "W") for text in texts]

    monkeypatch.setattr(yaml_reader, "_FAST_PARSER", yaml.SafeLoader)

    for text, before in zip(texts, with_it, strict=True):
        parts = split_workflow(f"---\n{text}\n---\n", "W")
        assert parts.problems == before.problems
        assert _outline(parts.document) == _outline(before.document)


def _outline(node: Node | None) -> object:
    if node is None:
        return None
    inner = [_outline(child) for child in node.children()]
    return (inner, None if inner else node.value, placed(node))


def test_what_is_wrong_above_a_mistake_in_the_syntax_is_told_too() -> None:
    """The mistake that ends reading hides none that was found before it."""
    assert refused("a: 1\na: 2\nb: !!str c\nd: [") == [
        "W:3:1: a: stands twice; first on line 2",
        "W:4:4: b: tags such as tag:yaml.org,2002:str are not accepted; write a plain value",
        "W:6:1: invalid YAML: a value is missing here",
    ]
