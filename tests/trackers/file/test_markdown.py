"""A change of an issue's file changes what was asked for, and no other byte where it can."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sortie.model import Comment, Issue, TrackerError, TrackerErrorKind
from sortie.trackers.file.entries import AddComment, Change, IssueEntry, SetState
from sortie.trackers.file.fields import harmless
from sortie.trackers.file.markdown import Markdown

NOW = datetime(2026, 5, 1, 12, 30, 15, 999, tzinfo=UTC)
STAMP = "2026-05-01T12:30:15Z"
IN_FLOW = f'{{author: "sortie", body: "Done.", created_at: "{STAMP}"}}'


def issue_in(raw: bytes) -> Issue:
    (entry,) = Markdown().read("DEMO-1.md", raw, None)
    assert isinstance(entry, IssueEntry), entry
    return entry.issue


def changed(text: str, change: Change) -> str:
    raw = text.encode()
    return Markdown().rewrite("DEMO-1.md", raw, issue_in(raw), change)[0].decode()


@pytest.mark.parametrize(
    ("written", "state", "expected"),
    [
        ("state: Todo", "Done", "state: Done"),
        ("state:   Todo   # why", "In Review", "state:   In Review   # why"),
        ('state: "Todo"', "Done", 'state: "Done"'),
        ("state: 'Todo'", "Won't do", "state: 'Won''t do'"),
        ("state: Todo", "yes", 'state: "yes"'),
        ("state: Todo", "12", 'state: "12"'),
        ("state: Todo", "a: b # c", 'state: "a: b # c"'),
        ("state: Todo", "Erledigt ✓", 'state: "Erledigt ✓"'),
        ("state: Todo", "Überprüfen", "state: Überprüfen"),
        ("state: !!str Todo", "Done", "state: !!str Done"),
        ("state: &s Todo", "Done", "state: &s Done"),
        ("state: >-\n  To\n  do", "Done", "state: Done"),
        ("other: &s Todo\nstate: *s", "Done", "other: &s Todo\nstate: Done"),
        ("? state\n: Todo", "Done", "? state\n: Done"),
    ],
)
def test_a_transition_replaces_the_characters_of_the_state(
    written: str, state: str, expected: str
) -> None:
    """Quoting, spaces, comments and all other lines stay as they were."""
    frame = "---\n# about\nb:   [1,2 ]\ntitle: 'x'\n{}\nz: {{a: b}}  # end\n---\nbody\n"

    after = changed(frame.format(written), SetState(state=state, at=NOW))

    assert after == frame.format(expected)


def test_updated_at_is_written_only_where_it_stood() -> None:
    """A file that keeps its own time gets the time of the change; another gets no new key."""
    with_time = "---\ntitle: x\nupdated_at: 2020-01-01  # t\nstate: a\n---\n"
    quoted = "---\ntitle: x\nupdated_at: '2020-01-01'\nstate: a\n---\n"
    empty = "---\ntitle: x\nupdated_at:\nstate: a\n---\n"

    change = SetState(state="b", at=NOW)

    assert changed(with_time, change) == (
        f"---\ntitle: x\nupdated_at: {STAMP}  # t\nstate: b\n---\n"
    )
    assert changed(quoted, change) == f"---\ntitle: x\nupdated_at: '{STAMP}'\nstate: b\n---\n"
    assert changed(empty, change) == f"---\ntitle: x\nupdated_at: {STAMP}\nstate: b\n---\n"


ONE = f"- author: sortie\n{{0}}  body: Done.\n{{0}}  created_at: {STAMP}\n"


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("title: x\nstate: a\n", "title: x\nstate: a\ncomments:\n  " + ONE.format("  ")),
        (
            "comments: []  # none yet\ntitle: x\nstate: a\n",
            "comments:  # none yet\n  " + ONE.format("  ") + "title: x\nstate: a\n",
        ),
        (
            "comments:\ntitle: x\nstate: a\n",
            "comments:\n  " + ONE.format("  ") + "title: x\nstate: a\n",
        ),
        (
            "title: x\nstate: a\ncomments:\n- body: hi # c\n\n# after\nz: 1\n",
            "title: x\nstate: a\ncomments:\n- body: hi # c\n"
            + ONE.format("")
            + "\n# after\nz: 1\n",
        ),
        (
            "title: x\nstate: a\ncomments:\n    - author: a\n      body: |\n        hi\n\n\nz: 1\n",
            "title: x\nstate: a\ncomments:\n    - author: a\n      body: |\n        hi\n    "
            + ONE.format("    ")
            + "\n\nz: 1\n",
        ),
        (
            "title: x\nstate: a\ncomments: [{body: hi}]\n",
            "title: x\nstate: a\ncomments: [{body: hi}, "
            f'{{author: "sortie", body: "Done.", created_at: "{STAMP}"}}]\n',
        ),
    ],
)
def test_a_comment_is_appended_as_the_file_is_laid_out(before: str, expected: str) -> None:
    """The new item follows the last one, indented alike; the rest is untouched."""
    frame = "---\n{}---\nbody"

    after = changed(frame.format(before), AddComment(body="Done.", at=NOW))

    assert after == frame.format(expected)


def test_a_comment_of_several_lines_can_be_read_by_people() -> None:
    """It is a block, with the file's own line ends."""
    before = "---\r\ntitle: x\r\nstate: a\r\n---\r\nbody\r\n"

    after = changed(before, AddComment(body="one\n\n  two: # 3\n---", at=NOW))

    assert after == (
        "---\r\ntitle: x\r\nstate: a\r\ncomments:\r\n  - author: sortie\r\n    body: |-\r\n"
        "      one\r\n\r\n        two: # 3\r\n      ---\r\n"
        f"    created_at: {STAMP}\r\n---\r\nbody\r\n"
    )


def test_a_comment_that_begins_with_space_keeps_the_layout_too() -> None:
    """It is a block whose indentation is told, not guessed from its first line."""
    before = "---\nb:   [1,2 ]\ntitle: x\nstate: a\n---\n"

    after = changed(before, AddComment(body="  one\ntwo", at=NOW))

    assert after == (
        "---\nb:   [1,2 ]\ntitle: x\nstate: a\ncomments:\n  - author: sortie\n    body: |2-\n"
        f"        one\n      two\n    created_at: {STAMP}\n---\n"
    )


@pytest.mark.parametrize(
    ("front", "comments"),
    [
        ("{title: x, state: a, n: ~}", f"{{title: x, state: a, n: ~, comments: [{IN_FLOW}]}}"),
        ("{title: x, state: a, comments: []}", f"{{title: x, state: a, comments: [{IN_FLOW}]}}"),
        ("{title: x, state: a,comments:}", f"{{title: x, state: a,comments: [{IN_FLOW}]}}"),
        (
            "title: x\nstate: a\ncomments: [{body: a},]",
            f"title: x\nstate: a\ncomments: [{{body: a}}, {IN_FLOW}]",
        ),
    ],
)
def test_a_comment_in_brackets_is_written_in_them(front: str, comments: str) -> None:
    """So the front matter keeps its style."""
    after = changed(f"---\n{front}\n---\nbody\n", AddComment(body="Done.", at=NOW))

    assert after == f"---\n{comments}\n---\nbody\n"


@pytest.mark.parametrize(
    ("front", "change"),
    [
        ("title: x\nstate: &s a\nalso: *s", SetState(state="b", at=NOW)),
        ("title: x\nstate: a\ncomments: [{body: a}, # why\n  ]", AddComment(body="c", at=NOW)),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(front: str, change: Change) -> None:
    """A value that another one refers to, for example."""
    with pytest.raises(TrackerError, match="write its fields one to a line") as refused:
        changed(f"---\n{front}\n---\nbody\n", change)

    assert refused.value.kind is TrackerErrorKind.INVALID


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
NAME = (
    TEXT.map(lambda text: " ".join("".join(c for c in text if c.isprintable()).split()))
).filter(bool)
VALUE = st.one_of(
    NAME.map(lambda text: json.dumps(text, ensure_ascii=False)),
    NAME.map(lambda text: "'" + text.replace("'", "''") + "'"),
    st.sampled_from(["~", "1", "on", "[a, b]", "{a: b}", "|\n  one\n\n  two", ">-\n  x\n  y", ""]),
)
NEWLINE = st.sampled_from(["\n", "\r\n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    keys = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=5))
    lines = [f"{key}: {draw(VALUE)}" for key in keys]
    lines.append(f"title: {json.dumps(draw(NAME), ensure_ascii=False)}")
    lines.append("state: " + draw(st.sampled_from(["Todo", "a b  # c", '"x"', "'y'"])))
    if draw(st.booleans()):
        lines.append(
            draw(
                st.sampled_from(
                    ["comments:", "comments: []", "comments:\n- body: x", "comments: [{body: y}]"]
                )
            )
        )
    if draw(st.booleans()):
        lines.append("updated_at: 2020-01-01")
    lines = draw(st.permutations(lines))
    comments = draw(st.sampled_from(["", "# a comment\n", "\n"]))
    body = draw(TEXT)
    text = "---\n" + comments + "\n".join(lines) + "\n---\n"
    text = text.replace("\n", draw(NEWLINE)) + body
    return (draw(st.sampled_from(["", "\ufeff"])) + text).encode()


def body_of(raw: bytes) -> bytes:
    return raw.split(b"\n---", 1)[1]


def lines_but(raw: bytes, *keys: bytes) -> list[bytes]:
    return [line for line in raw.split(b"\n---", 1)[0].split(b"\n") if not line.startswith(keys)]


@given(files(), NAME)
def test_a_transition_changes_nothing_but_state_and_time(raw: bytes, state: str) -> None:
    """Read before and after, all else is equal; body, key order and other lines to the byte."""
    before = issue_in(raw)

    new, _ = Markdown().rewrite("DEMO-1.md", raw, before, SetState(state=state, at=NOW))

    after = issue_in(new)
    assert after.state == state
    assert replace(after, state="", updated_at=None) == replace(before, state="", updated_at=None)
    assert body_of(new) == body_of(raw)
    assert lines_but(new, b"state:", b"updated_at:") == lines_but(raw, b"state:", b"updated_at:")


@given(files(), TEXT)
def test_a_comment_changes_nothing_but_comments_and_time(raw: bytes, body: str) -> None:
    """Any body is read back as it was given; all else is equal, the file's body to the byte."""
    before = issue_in(raw)
    text = harmless(body).rstrip("\n")

    new, _ = Markdown().rewrite("DEMO-1.md", raw, before, AddComment(body=text, at=NOW))

    after = issue_in(new)
    said = Comment(
        author="sortie", author_id="sortie", body=text, created_at=NOW.replace(microsecond=0)
    )
    assert after.comments == (*before.comments, said)
    assert replace(after, comments=(), updated_at=None) == replace(
        before, comments=(), updated_at=None
    )
    assert body_of(new) == body_of(raw)
