"""The ``reactions`` block: what counts is said by words or names, and faults at their place."""

from __future__ import annotations

import pytest

from tests.config.sample import GOOD, decoded


@pytest.mark.parametrize("block", ["review", "commands"])
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("write", "write"),
        ("anyone", "anyone"),
        ("[alice, ' bob ']", ("alice", "bob")),
        ("[write]", ("write",)),
    ],
)
def test_whose_words_count_is_a_word_or_a_list(
    block: str, written: str, expected: str | tuple[str, ...]
) -> None:
    """A list has names, also where one is called like a word."""
    found = decoded(f"{GOOD}reactions: {{{block}: {{from: {written}}}}}\n").settings

    assert found is not None
    reaction = getattr(found.reactions, block)
    assert reaction.authors == expected


@pytest.mark.parametrize(
    ("block", "where", "message"),
    [
        ("{from: writers}", "from", 'write, anyone or a list of names, not the text "writers"'),
        ("{from: []}", "from", "write, anyone or a list of names, not an empty list"),
        ("{from: {}}", "from", "write, anyone or a list of names, not a mapping"),
        ("{from: true}", "from", "write, anyone or a list of names, not true"),
        ("{from: [a, 5]}", "from[1]", "needs a name on one line, not 5"),
        ('{from: [""]}', "from[0]", 'needs a name on one line, not the text ""'),
        ('{from: ["a\\nb"]}', "from[0]", "needs a name on one line"),
        ("{bots: [1]}", "bots[0]", "needs a text, not 1"),
    ],
)
def test_a_fault_is_told_once_and_at_its_place(block: str, where: str, message: str) -> None:
    """The name of an item counts from 0."""
    found = decoded(f"{GOOD}reactions: {{review: {block}}}\n").problems

    (error,) = [problem for problem in found if problem.severity == "error"]
    assert error.key == f"reactions.review.{where}"
    assert message in error.message
