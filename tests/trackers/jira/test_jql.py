"""Queries from which neither a state's name nor a filter breaks out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sortie.trackers.jira.jql import enclosed, flaw_of, one_of, query, quoted
from tests.trackers.jira.jql import JqlError, parse

OURS: dict[str, Any] = {"project": "OURS", "status": "Todo", "summary": "x"}
THEIRS: dict[str, Any] = {"project": "THEIRS", "status": "Todo", "summary": "x"}


def _is(name: str) -> Any:
    return lambda record, operator, value: (record[name] == value) is (operator == "=")


FIELDS = {name: _is(name) for name in ("project", "status", "summary")}


def chosen(text: str) -> list[str]:
    """Return the projects of the issues that a query chooses."""
    found = parse(text, FIELDS)
    return [record["project"] for record in (OURS, THEIRS) if found.test(record)]


@given(st.text())
def test_a_name_is_found_whatever_it_holds(name: str) -> None:
    """Quotes, backslashes, line ends and all else arrive as what they are, and end nothing."""
    record = {"project": "OURS", "status": name}

    found = parse(query('project = "OURS"', one_of("status", ["Todo", name])), FIELDS)

    assert found.test(record)
    assert found.order == ("created", "key")


@pytest.mark.parametrize(
    "name", ['a"b', "a\\", '"', '\\"', "\\u0041", "a\nb\tc\rd", "x') OR (project = THEIRS"]
)
def test_hostile_names_are_found(name: str) -> None:
    """The same, for the names that one would try first."""
    test = parse(query(f"status = {quoted(name)}"), FIELDS).test

    assert test({"status": name})
    assert not test({"status": f"{name}x"})


@pytest.mark.parametrize(
    ("filter_", "flaw"),
    [
        ("project = THEIRS) OR (project = THEIRS", "closes a bracket"),
        ("(status = Todo", "1 bracket is not closed"),
        ('status = "Todo', 'end it with "'),
        ("status = 'Todo", "end it with '"),
        ("status = Todo order\n BY created", "ORDER BY"),
        ('summary = x\\") OR project = THEIRS OR (summary = "y', "backslash"),
        ("status = \x00Todo", "control character"),
        ('status = "To\ndo"', "control character"),
    ],
)
def test_filters_that_would_break_out_are_refused(filter_: str, flaw: str) -> None:
    """Brackets, quotes, ORDER BY and characters that Jira reads otherwise than we do."""
    assert flaw in (flaw_of(filter_) or "")


@pytest.mark.parametrize(
    "filter_",
    [
        "status = Todo",
        "status = Todo OR project = THEIRS",
        'summary = "a) OR (b" OR status = Todo',
        "summary = 'order by' OR status = Todo",
        'summary = "\\") OR (" OR status = Todo',
        "((status = Todo))",
        "reorder = 1 OR orderBy = 2",
    ],
)
def test_filters_that_stay_in_their_place_are_taken(filter_: str) -> None:
    """Whatever stands in quotes means nothing to us."""
    assert flaw_of(filter_) is None


WORDS = st.sampled_from(
    ["status", "=", "Todo", "OR", "AND", "NOT", "(", ")", '"', "'", "\\", "project", "THEIRS"] * 2
    + ["order", "by", ",", "in", " ", "\n", "\t", "\x00", "x", '\\"', "''", "summary"]
)


@given(st.lists(WORDS, max_size=25).map(" ".join) | st.text(max_size=40))
def test_no_filter_that_is_taken_widens_the_query(filter_: str) -> None:
    """A filter that we take and Jira understands chooses no issue of another project."""
    assume(flaw_of(filter_) is None)

    text = query('project = "OURS"', enclosed(filter_))
    try:
        projects = chosen(text)
    except JqlError:
        return

    assert "THEIRS" not in projects


def test_a_filter_that_is_not_looked_at_does_widen_it() -> None:
    """The property above can fail: this one is refused for a reason."""
    filter_ = "status = x) OR (project = THEIRS"

    assert chosen(query('project = "OURS"', f"({filter_})")) == ["THEIRS"]
