"""JSON text becomes nodes that know where they stand."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.documents import Fault, Node, Text
from sortie.documents.json_reader import ListItem, item_at, item_spans
from sortie.trackers.file.entries import content_of


def items(text: str) -> list[ListItem]:
    whole = Text("T", text)
    return [item_at(whole, start)[0] for start, _ in item_spans(whole)]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def expected(value: object) -> object:
    match value:
        case str():
            return value
        case list():
            return [expected(item) for item in value]
        case dict():
            return [(key, expected(item)) for key, item in value.items()]
        case None:
            return ("special", "")
        case _:
            return ("special", json.dumps(value).casefold())


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, 2]))
def test_a_list_says_what_the_standard_library_reads(
    values: list[object], indent: int | None
) -> None:
    """Whatever json writes, however laid out, is read back as the same values."""
    text = json.dumps(values, indent=indent)

    read = [item.node for item in items(text)]

    assert [content_of(node) for node in read] == expected(values)


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_the_values_of_an_issue_stand_where_they_say(value: dict[str, object]) -> None:
    """The characters between a value's offsets are that value."""
    text = json.dumps([value], indent=1, ensure_ascii=False)

    (item,) = items(text)

    nodes = item.node.children()
    placed = {n.key.text: json.loads(text[n.start : n.end]) for n in nodes if n.key}
    assert placed == value


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("", 0, "not a JSON list"),
        ('{"issues": []}', 0, "not a JSON list"),
        ("[1, 2", 5, "expected ',' or ']'"),
        ("[1,]", 3, "Expecting value"),
        ('[{"a" 1}]', 6, "expected ':'"),
        ('[{"a": 1,}]', 9, "Expecting value"),
        ("[{1: 2}]", 2, "a key must be a string"),
        ("[] x", 3, "text after the list"),
        ("[" * 100_000, 1, "nested too deeply"),
        ('[{"a": ' + "[" * 100_000, 7, "nested too deeply"),
    ],
)
def test_what_is_not_a_json_list_is_refused_at_its_place(
    text: str, offset: int, problem: str
) -> None:
    """The whole text is refused where it stops being JSON."""
    with pytest.raises(Fault) as refused:
        items(text)

    assert problem in str(refused.value.problem)
    assert refused.value.place.column == offset + 1


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ('{"id": "a", "id": "b"}', "id: stands twice"),
        ('{"id": "a", "x": ' + "[" * 80 + "]" * 80 + "}", "nested deeper"),
    ],
)
def test_a_fault_of_one_item_leaves_the_others_readable(item: str, problem: str) -> None:
    """Valid JSON that cannot be an issue spoils itself only, and keeps what was readable."""
    first, second = items(f'[{item}, {{"id": "c"}}]')

    assert first.fault is not None
    assert problem in str(first.fault.problem)
    assert first.node.get("id") is not None
    assert second.fault is None


def test_numbers_are_kept_as_written() -> None:
    """A number too long for Python to convert is text until a field wants a number."""
    digits = "9" * 10_000

    (item,) = items(f"[{digits}]")

    assert item.node.text == digits


@given(st.text(alphabet='[]{},:"\\ \n\t1eE.-+ntfaulsrue\ufeff', max_size=40))
def test_any_text_is_items_or_a_fault(text: str) -> None:
    """No text makes the reader fail in another way."""
    read: list[Node] = []

    with suppress(Fault):
        read += [item.node for item in items(text)]

    assert all(isinstance(node, Node) for node in read)
