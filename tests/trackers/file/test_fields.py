"""What each field of an issue accepts, and what is said of what it does not accept."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.model import Blocker, Comment, Issue, IssueId
from sortie.trackers.file.entries import IgnoredFile, IssueEntry, MalformedEntry
from sortie.trackers.file.fields import harmless
from sortie.trackers.file.markdown import Markdown


def read(text: str, name: str = "DEMO-1.md") -> IssueEntry | MalformedEntry:
    (entry,) = Markdown().read(name, text.encode(), None)
    assert not isinstance(entry, IgnoredFile)
    return entry


def issue_of(text: str) -> Issue:
    entry = read(text)
    assert isinstance(entry, IssueEntry), entry
    return entry.issue


def complaint_of(text: str, name: str = "DEMO-1.md") -> str:
    entry = read(text, name)
    assert isinstance(entry, MalformedEntry), entry
    return entry.message


def test_the_least_issue_takes_its_names_from_its_file() -> None:
    """Title and state are enough: the id is the file's stem, the identifier is the id."""
    issue = issue_of("---\ntitle: Do it\nstate: Todo\n---\n")

    assert issue == Issue(id=IssueId("DEMO-1"), identifier="DEMO-1", title="Do it", state="Todo")


def test_every_field_is_read() -> None:
    """Each documented key ends up in its field; unknown keys are no matter."""
    text = """---
id: 17
identifier: X-17
title: Add a
  thing
state: "In Progress"
priority: 2
labels: [a, b c]
author: ben
assignee: ann
issue_type: bug
branch_name: fix/x
parent: X-1
blocked_by:
- X-2
- X-3
url: https://example.org/17
created_at: 2026-05-01
updated_at: 2026-05-01T12:00:00+02:00
comments:
  - {author: ann, body: hi, created_at: 2026-05-02 01:02:03 -05}
  - body: |
      lines
mood: [unknown, {keys: are}, fine]
---

The description.
"""

    assert issue_of(text) == Issue(
        id=IssueId("17"),
        identifier="X-17",
        title="Add a thing",
        state="In Progress",
        description="The description.",
        priority=2,
        url="https://example.org/17",
        labels=("a", "b c"),
        author="ben",
        author_id="ben",
        assignee="ann",
        issue_type="bug",
        branch_name="fix/x",
        parent="X-1",
        comments=(
            Comment(
                author="ann",
                author_id="ann",
                body="hi",
                created_at=datetime(2026, 5, 2, 6, 2, 3, tzinfo=UTC),
            ),
            Comment(author="unknown", body="lines\n"),
        ),
        blocked_by=(Blocker(identifier="X-2"), Blocker(identifier="X-3")),
        created_at=datetime(2026, 5, 1, tzinfo=UTC),
        updated_at=datetime(2026, 5, 1, 10, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("front", "field", "value"),
    [
        ("title: 123", "title", "123"),
        ("title: 1.50", "title", "1.50"),
        ("title: true", "title", "true"),
        ("state: yes", "state", "yes"),
        ("state: on", "state", "on"),
        ('state: " To Do "', "state", "To Do"),
        ("title: 2026-05-01", "title", "2026-05-01"),
        ("labels: one", "labels", ("one",)),
        ("labels: [1, yes]", "labels", ("1", "yes")),
        ("labels:", "labels", ()),
        ("labels: ['', a]", "labels", ("a",)),
        ("priority:", "priority", None),
        ("priority: -3", "priority", -3),
        ("assignee: ''", "assignee", None),
        ("comments: []", "comments", ()),
        ("created_at:", "created_at", None),
        ("created_at: '2026-05-01t12:00z'", "created_at", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("title: '{{ 7*7 }}'", "title", "{{ 7*7 }}"),
        ('title: "a\\e[31mred\\nb\\0"', "title", "a\ufffd[31mred b\ufffd"),
    ],
)
def test_a_value_is_taken_as_it_is_written(front: str, field: str, value: object) -> None:
    """Words and numbers are text where text is wanted; control characters become visible."""
    rest = {"title": "title: t\n", "state": "state: s\n"}
    rest.pop(field, None)

    issue = issue_of(f"---\n{front}\n{''.join(rest.values())}---\n")

    assert getattr(issue, field) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "1:1: no front matter: the first line must be ---"),
        ("just text\n---\n", "1:1: no front matter: the first line must be ---"),
        ("---\ntitle: t\n", "1:1: the front matter is not closed by a line ---"),
        ("---\n---\n", "2:1: the front matter must be a mapping of fields to values"),
        ("---\n- a\n---\n", "2:1: the front matter must be a mapping of fields to values"),
        ("---\ntitle: t\n---\n", "2:1: state: required, but missing"),
        ("---\ntitle: t\nstate:\n---\n", "3:7: state: required, but missing"),
        ("---\ntitle: t\nstate: [a]\n---\n", "3:8: state: must be text"),
        ("---\ntitle: '  '\nstate: s\n---\n", "2:8: title: required, but missing"),
        ("---\ntitle: t\nstate: s\nstate: s\n---\n", "4:1: state: stands twice; keep one of them"),
        (
            '---\ntitle: t\nstate: "a\\nb"\n---\n',
            "3:8: state: must be one line without control characters, found U+000A",
        ),
        (
            '---\nid: "a\\0"\ntitle: t\nstate: s\n---\n',
            "2:5: id: must be one line without control characters, found U+0000",
        ),
        (
            "---\ntitle: t\nstate: s\npriority: high\n---\n",
            "4:11: priority: must be a whole number, or nothing",
        ),
        (
            '---\ntitle: t\nstate: s\npriority: "1"\n---\n',
            "4:11: priority: must be a whole number, or nothing",
        ),
        (
            "---\ntitle: t\nstate: s\npriority: 99999999999\n---\n",
            "4:11: priority: must be a whole number, or nothing",
        ),
        (
            "---\ntitle: t\nstate: s\nlabels:\n  - a\n  - {b: c}\n---\n",
            "6:5: labels: must be text or a list of texts",
        ),
        (
            "---\ntitle: t\nstate: s\ncreated_at: yesterday\n---\n",
            "4:13: created_at: must be a time such as 2026-05-01T12:00:00Z, or a date",
        ),
        (
            "---\ntitle: t\nstate: s\ncreated_at: 0001-01-01T00:00:00+14:00\n---\n",
            "4:13: created_at: must be a time such as 2026-05-01T12:00:00Z, or a date",
        ),
        ("---\ntitle: t\nstate: s\ncomments: hello\n---\n", "4:11: comments: must be a list"),
        (
            "---\ntitle: t\nstate: s\ncomments:\n  - author: ann\n---\n",
            "5:5: comments: body: required, but missing",
        ),
        (f"---\nidentifier: {'x' * 300}\n---\n", "2:13: identifier: longer than 255 characters"),
        (
            f"---\ntitle: {'x' * 5000}\nstate: s\n---\n",
            "2:8: title: longer than 4096 characters",
        ),
        (
            "---\ntitle: t\n state: [\n---\n",
            "3:7: invalid YAML: a key cannot stand here: the text above goes on until here; "
            "look at the indentation, and for a colon that is missing",
        ),
    ],
)
def test_a_malformed_issue_is_one_complaint_with_its_place(text: str, complaint: str) -> None:
    """The first thing wrong is named with file, line, column and key."""
    assert complaint_of(text) == f"DEMO-1.md:{complaint}"


def test_a_file_that_is_not_utf_8_is_named_at_its_first_bad_byte() -> None:
    """Bytes of another encoding are an error with a place, not a replaced character."""
    raw = "---\ntitle: é".encode() + b"\xff\n---\n"

    (entry,) = Markdown().read("DEMO-1.md", raw, None)

    assert isinstance(entry, MalformedEntry)
    assert entry.message == "DEMO-1.md:2:9: not UTF-8"


@pytest.mark.parametrize(
    ("name", "text", "known", "guess"),
    [
        ("DEMO-1.md", "no front matter", None, "DEMO-1"),
        ("DEMO-1.md", "no front matter", "42", "42"),
        ("DEMO-1.md", "---\nid: 43 # x\nstate: [\n---\n", "42", "43"),
        ("DEMO-1.md", "---\nid: '4 3'\nstate: [\n---\n", None, "4 3"),
        ("DEMO-1.md", "---\ntitle: t\n---\n", "42", "DEMO-1"),
        ("DEMO-1.md", "---\nid: [1]\ntitle: t\n---\n", "42", "42"),
    ],
)
def test_a_malformed_file_still_hints_at_its_id(
    name: str, text: str, known: str | None, guess: str
) -> None:
    """What it says, what it was when it was readable, its name: the best there is."""
    (entry,) = Markdown().read(name, text.encode(), IssueId(known) if known else None)

    assert isinstance(entry, MalformedEntry)
    assert entry.id == guess


def test_a_file_whose_name_cannot_be_an_id_says_so() -> None:
    """Control characters of a file's name reach neither the id nor the log."""
    complaint = complaint_of("---\ntitle: t\nstate: s\n---\n", "a\x1b[2Jb\n.md")

    assert complaint == (
        "a\ufffd[2Jb\ufffd.md:2:1: id: missing, and the file's name cannot stand in for it"
    )


@given(st.text())
def test_harmless_text_holds_no_control_characters(text: str) -> None:
    """Only tabs and line feeds are left of what could steer a terminal, and UTF-8 can hold it."""
    made = harmless(text)

    assert made.encode().decode() == made
    assert all(c in "\t\n" or c.isprintable() or ord(c) > 0x9F for c in made)
    assert harmless(made) == made


def test_names_in_one_text_are_separated_by_commas() -> None:
    """A text of several names is several names; in a list a comma is part of a name."""
    several = issue_of("---\ntitle: t\nstate: s\nblocked_by: A-1, B-2 ,\nlabels: x y,z\n---\n")
    listed = issue_of('---\ntitle: t\nstate: s\nblocked_by: ["A-1, B-2"]\nlabels: [x]\n---\n')

    assert several.blocked_by == (Blocker(identifier="A-1"), Blocker(identifier="B-2"))
    assert several.labels == ("x y", "z")
    assert listed.blocked_by == (Blocker(identifier="A-1, B-2"),)
