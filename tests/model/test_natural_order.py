"""Names that hold numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sortie.model.issues import natural_key

LONG = "a-" + "9" * 5000


def test_numbers_count_as_numbers() -> None:
    """Wherever they stand, however long they are, and with zeros before them."""
    mixed = [
        "B-1",
        "A-10",
        LONG,
        "10",
        "A-2",
        "A-11",
        "2",
        "A-10-11",
        "A",
        "a-1",
        "A-02",
        "A-10-2",
        "",
    ]

    assert sorted(mixed, key=natural_key) == [
        "",
        "2",
        "10",
        "A",
        "A-02",
        "A-2",
        "A-10",
        "A-10-2",
        "A-10-11",
        "A-11",
        "B-1",
        "a-1",
        LONG,
    ]


@given(st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("0123456789")), unique=True))
def test_any_names_have_one_order(names: list[str]) -> None:
    """Any two of them can be compared, and no two have the same place."""
    backwards = names[::-1]

    assert sorted(names, key=natural_key) == sorted(backwards, key=natural_key)
    assert len({natural_key(name) for name in names}) == len(names)
