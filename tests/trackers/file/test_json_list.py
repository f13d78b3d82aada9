"""A change in a JSON file of issues touches one issue's own values, and no other character."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.model import Blocker, Comment, Issue, IssueId, TrackerError, TrackerErrorKind
from sortie.trackers.file.entries import AddComment, Change, IssueEntry, MalformedEntry, SetState
from sortie.trackers.file.fields import harmless
from sortie.trackers.file.json_list import IssueList

NOW = datetime(2026, 5, 1, 12, 30, 15, 999, tzinfo=UTC)
STAMP = "2026-05-01T12:30:15Z"
SAID = '"author": "sortie", "body": "Done.", "created_at": "2026-05-01T12:30:15Z"'


def read(text: str) -> tuple[IssueEntry | MalformedEntry, ...]:
    return IssueList().read("issues.json", text.encode(), None)


def issues_in(text: str) -> list[Issue]:
    return [entry.issue for entry in read(text) if isinstance(entry, IssueEntry)]


def changed(text: str, change: Change, number: int = 0) -> str:
    issue = issues_in(text)[number]
    return IssueList().rewrite("issues.json", text.encode(), issue, change)[0].decode()


def test_issues_are_read_with_the_names_of_front_matter() -> None:
    """Ids may be numbers, the identifier stands in for a missing id, the description is a field."""
    text = (
        '[{"id": 7, "title": 12, "state": "Todo", "description": "a\\nb", "priority": 1},\n'
        ' {"identifier": "B", "title": "t", "state": "Done", "blocked_by": ["7"], "x": {}}]'
    )

    assert issues_in(text) == [
        Issue(
            id=IssueId("7"),
            identifier="7",
            title="12",
            state="Todo",
            description="a\nb",
            priority=1,
        ),
        Issue(
            id=IssueId("B"),
            identifier="B",
            title="t",
            state="Done",
            blocked_by=(Blocker(identifier="7"),),
        ),
    ]


def test_each_malformed_item_is_one_complaint_with_its_place() -> None:
    """What is wrong in one issue is told with line and column, and spoils no other."""
    text = """[
  {"id": "A", "title": "t"},
  {"id": "B", "title": "t",
   "state": []},
  7,
  {"title": "t", "state": "s"},
  {"id": "C", "title": "t", "state": "s"},
  {"id": "D", "id": "E", "title": "t", "state": "s"},
  {"id": "F", "title": "t", "state": "\\ud800"}
]"""

    entries = read(text)

    assert [(e.id, e.message) for e in entries if isinstance(e, MalformedEntry)] == [
        ("A", "issues.json:2:3: state: required, but missing"),
        ("B", "issues.json:4:13: state: must be text"),
        (None, "issues.json:5:3: an issue must be a mapping of fields to values"),
        (None, "issues.json:6:3: id: required, but missing"),
        ("D", "issues.json:8:15: id: stands twice; keep one of them"),
        (
            "F",
            "issues.json:9:38: state: must be one line without control characters, found U+D800",
        ),
    ]
    assert [issue.id for issue in issues_in(text)] == ["C"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"a": 1}', "issues.json:1:1: not a JSON list of issues"),
        (b"[\n{]", "issues.json:2:2: not valid JSON: Expecting value"),
        (b'["\xc3\xa9\xff"]', "issues.json:1:4: not UTF-8"),
        (b"", "issues.json:1:1: not a JSON list of issues"),
    ],
)
def test_a_broken_file_tells_nothing_about_any_issue(raw: bytes, message: str) -> None:
    """It is an outage, so that no issue is taken for missing."""
    with pytest.raises(TrackerError) as refused:
        IssueList().read("issues.json", raw, None)

    assert (refused.value.kind, str(refused.value)) == (TrackerErrorKind.UNAVAILABLE, message)


def test_a_byte_order_mark_is_no_hindrance() -> None:
    """It is accepted, and kept when the file is written."""
    text = '\ufeff[{"id": "A", "title": "t", "state": "s"}]'

    assert changed(text, SetState(state="d", at=NOW)) == text.replace('"s"', '"d"')


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('{"id":1,"state" : "s","title":"t"}', '{"id":1,"state" : "d\u00e9","title":"t"}'),
        (
            '{"id": 1, "state": "s", "title": "\u00e9", "updated_at": null}',
            f'{{"id": 1, "state": "d\u00e9", "title": "\u00e9", "updated_at": "{STAMP}"}}',
        ),
    ],
)
def test_a_transition_replaces_the_characters_of_the_state(before: str, expected: str) -> None:
    """Spaces stay as they were; ASCII files stay ASCII."""
    frame = '[ {},\r\n{{"id": "z", "title": "t", "state": "s"}}]\n'
    if before.isascii():
        expected = expected.replace("\u00e9", "\\u00e9")

    after = changed(frame.format(before), SetState(state="d\u00e9", at=NOW))

    assert after == frame.format(expected)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (
            '{"id": 1, "title": "t", "state": "s"}',
            f'{{"id": 1, "title": "t", "state": "s", "comments": [{{{SAID}}}]}}',
        ),
        (
            '{"comments": [ {"body": "x"} ], "id": 1, "title": "t", "state": "s"}',
            f'{{"comments": [ {{"body": "x"}}, {{{SAID}}} ], "id": 1, "title": "t", "state": "s"}}',
        ),
        (
            '{\n   "id": 1,\n   "title": "t",\n   "state": "s",\n   "comments": null\n }',
            '{\n   "id": 1,\n   "title": "t",\n   "state": "s",\n   "comments": [\n     {\n'
            '       "author": "sortie",\n       "body": "Done.",\n'
            f'       "created_at": "{STAMP}"\n     }}\n   ]\n }}',
        ),
    ],
)
def test_a_comment_is_appended_as_the_issue_is_laid_out(before: str, expected: str) -> None:
    """On one line, or one key a line with the issue's own indentation."""
    frame = "[\n {}\n]"

    after = changed(frame.format(before), AddComment(body="Done.", at=NOW))

    assert after == frame.format(expected)


TEXT = st.text(max_size=20)
NAME = TEXT.map(lambda text: " ".join("".join(c for c in text if c.isprintable()).split())).filter(
    bool
)
EXTRA = st.dictionaries(
    TEXT.map(lambda key: f"x{key}"), TEXT | st.integers() | st.lists(TEXT, max_size=2), max_size=3
)


@st.composite
def lists(draw: st.DrawFn) -> str:
    values = []
    for number in range(draw(st.integers(1, 4))):
        comments: tuple[object, ...] = (
            None,
            [],
            [{"body": draw(TEXT)}],
            [{"body": "a"}, {"body": "b"}],
        )
        times: tuple[dict[str, object], ...] = (
            {},
            {"updated_at": None},
            {"updated_at": "2020-01-01"},
        )
        pairs: list[tuple[str, object]] = [
            ("id", number),
            ("title", draw(NAME)),
            ("state", draw(NAME)),
            *draw(EXTRA).items(),
            *draw(st.sampled_from([{}, *({"comments": c} for c in comments)])).items(),
            *draw(st.sampled_from(times)).items(),
        ]
        values.append(dict(draw(st.permutations(pairs))))
    indent = draw(st.sampled_from([None, 0, 2, "\t"]))
    text = json.dumps(values, indent=indent, ensure_ascii=draw(st.booleans()))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


def utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


@given(lists().filter(utf8), st.integers(0, 3), NAME)
def test_a_transition_changes_nothing_but_state_and_time(text: str, at: int, state: str) -> None:
    """The standard library reads the same values in the same order, but for the owned keys."""
    at %= len(issues_in(text))

    after = changed(text, SetState(state=state, at=NOW), at)

    expected = json.loads(text)
    expected[at]["state"] = state
    if "updated_at" in expected[at]:
        expected[at]["updated_at"] = STAMP
    assert json.dumps(json.loads(after)) == json.dumps(expected)


@given(lists().filter(utf8), st.integers(0, 3), TEXT)
def test_a_comment_changes_nothing_but_comments_and_time(text: str, at: int, body: str) -> None:
    """Any body is read back as it was given; the other issues are the same values."""
    before = issues_in(text)
    at %= len(before)
    said = harmless(body).rstrip("\n")

    after = issues_in(changed(text, AddComment(body=said, at=NOW), at))

    comment = Comment(
        author="sortie", author_id="sortie", body=said, created_at=NOW.replace(microsecond=0)
    )
    assert after[at].comments == (*before[at].comments, comment)
    bare = [replace(i, comments=(), updated_at=None) for i in (before[at], after[at])]
    assert bare[0] == bare[1]
    assert after[:at] + after[at + 1 :] == before[:at] + before[at + 1 :]
