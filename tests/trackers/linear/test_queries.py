"""Every document that is sent to Linear is one that its published schema knows."""

from __future__ import annotations

import re

import pytest
from graphql import FieldNode, TypeInfo, TypeInfoVisitor, Visitor, get_named_type, visit

from sortie.trackers.linear import queries
from tests.trackers.linear.schema import complexity, operation_of, parsed, schema
from tests.trackers.linear.service import MOST_POINTS
from tests.trackers.server.contract import Violation

DOCUMENTS = [
    value for name, value in vars(queries).items() if name[0].isupper() and isinstance(value, str)
]
NAMES = [re.findall(r"(?:query|mutation) (\w+)", text)[0] for text in DOCUMENTS]
BY_ID = {"issue", "team", "comment"}


def fields_of(text: str) -> list[tuple[FieldNode, str]]:
    """Return every field of a document with the name of its type."""
    info, found = TypeInfo(schema()), []

    class Finder(Visitor):
        def enter_field(self, node: FieldNode, *_: object) -> None:
            kind = get_named_type(info.get_type())
            found.append((node, kind.name if kind is not None else ""))

    visit(parsed(text), TypeInfoVisitor(info, Finder()))
    return found


def _name(node: object) -> str:
    assert isinstance(node, FieldNode)
    return node.name.value


@pytest.mark.parametrize("text", DOCUMENTS, ids=NAMES)
def test_it_is_valid_and_uses_nothing_deprecated(text: str) -> None:
    """The schema has no versions: what is deprecated may be gone tomorrow."""
    assert parsed(text) is not None


@pytest.mark.parametrize("text", DOCUMENTS, ids=NAMES)
def test_no_list_is_read_without_knowing_whether_it_goes_on(text: str) -> None:
    """A list that may have a next page is asked for with ``pageInfo``; one by id or key has none,
    and the list of keys is a hint for people."""
    short = {"SortieReread", "SortieRereadWithStates", "SortieRest", "SortieTeam"}
    short |= {
        "SortieLabels",
        "SortieTeamKeys",
        "SortieCommentIsThere",
        "SortiePerson",
        "SortieHistory",
    }
    bare = [
        node.name.value
        for node, kind in fields_of(text)
        if kind.endswith("Connection")
        and node.selection_set is not None
        and "pageInfo" not in [_name(s) for s in node.selection_set.selections]
    ]

    operation = operation_of(parsed(text)).name
    assert operation is not None
    by_name = {"issues", "teams", "comments", "users", "issueLabels"}
    allowed = by_name if operation.value in short else set()
    assert set(bare) <= allowed


@pytest.mark.parametrize("text", DOCUMENTS, ids=NAMES)
def test_nothing_is_asked_for_by_a_field_that_is_never_null(text: str) -> None:
    """One that is not there would make nothing of the whole document."""
    operation = operation_of(parsed(text))
    asked = {_name(node) for node in operation.selection_set.selections}

    assert asked & BY_ID == set()


def test_what_is_not_in_the_schema_is_noticed() -> None:
    """A field, an argument or a filter that Linear does not have is a violation."""
    wrong = (
        ("state { id name type }", "state { id name type kind }"),
        ("orderBy: createdAt", "orderBy: priority"),
        ("first: $first", "size: $first"),
        ("$first: Int!", "$first: String!"),
    )
    for right, instead in wrong:
        assert right in queries.ISSUES
        with pytest.raises(Violation):
            parsed(queries.ISSUES.replace(right, instead))


def test_a_page_of_candidates_is_not_too_complex_in_the_end() -> None:
    """Reckoned as Linear's pages describe it, some page of a sensible size is below the limit."""
    points = complexity(parsed(queries.ISSUES), {"first": 25, "filter": {}})

    assert points < MOST_POINTS
