"""A front matter is written anew with what stays as it was."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sortie.workflow.front_matter import split_workflow
from sortie.workflow.importing.front_matter import written

NAMES = st.sampled_from(["a", "b", "c-d", "on", "e f"])
SCALARS = st.sampled_from([1, 1.5, True, "x", "$X", "a: b", "# c", "two\nlines\n", "'", "yes", ""])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
BLOCKS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


def rewritten(text: str, new: dict[str, Any]) -> str:
    """Return the front matter ``text`` as one that says ``new``."""
    content = f"---\n{text}---\nprompt\n"
    document = split_workflow(content, "old.md").document
    assert document is not None
    return written(document, content, new, {})


def read(text: str) -> Any:
    """Return what our reader makes of a front matter."""
    document = split_workflow(f"---\n{text}---\n", "new.md").document
    assert document is not None
    return document.plain()


@given(BLOCKS)
def test_what_does_not_change_stays_to_the_letter(block: dict[str, Any]) -> None:
    """Comments included."""
    dumped = yaml.safe_dump(block, sort_keys=False)
    text = f"# first\n{dumped}# last\n"

    assert rewritten(text, read(text)) == text


@given(BLOCKS, BLOCKS)
def test_what_is_written_says_what_it_should(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Whatever was there before."""
    wanted = read(yaml.safe_dump(new, sort_keys=False))

    assert read(rewritten(yaml.safe_dump(old, sort_keys=False), wanted)) == wanted


def test_an_alias_whose_anchor_goes_is_written_out() -> None:
    """The comments go with it."""
    assert rewritten("a: &x [1]\n# why\nb: *x\n", {"b": [1]}) == "b:\n  - 1\n"


def test_a_comment_inside_of_a_script_is_no_comment() -> None:
    """It stays with its script, also where what follows goes."""
    text = "hooks:  # all\n  a: |\n    x\n    # y\n  # of b\n  b: 1\n# of c\nc: 1\n"

    assert rewritten(text, {"hooks": {"a": "x\n# y\n", "d": 2}}) == (
        "hooks:  # all\n  a: |\n    x\n    # y\n  d: 2\n"
    )
