"""What is known of files after a change is what would be known had they all been put together."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sortie.model import Issue, IssueId
from sortie.trackers.file.entries import Content, Entry, IgnoredFile, IssueEntry, MalformedEntry
from sortie.trackers.file.issue_index import IssueFile, index
from sortie.trackers.file.reading import Reading

IDS = st.sampled_from("ABCDEFGH")


@st.composite
def entries(draw: st.DrawFn) -> Entry | IgnoredFile:
    kind = draw(st.sampled_from(["issue"] * 8 + ["malformed", "ignored"]))
    if kind == "malformed":
        guess = draw(st.sampled_from([None, IssueId("A"), IssueId("B")]))
        return MalformedEntry(id=guess, where="w", message="w: no issue")
    if kind == "ignored":
        return IgnoredFile(where="w", message="w: not meant as one")
    issue_id = draw(IDS)
    identifier = draw(st.sampled_from([issue_id] * 4 + ["A", "B", "C"]))
    issue = Issue(id=IssueId(issue_id), identifier=identifier, title="t", state="Todo")
    return IssueEntry(issue=issue, state_key="todo", digest="", where=f"{draw(st.integers())}")


NAMES = st.sampled_from("123456")
CONTENTS = st.tuples(entries()) | st.lists(entries(), max_size=3).map(tuple)
CHANGES = st.dictionaries(NAMES, st.none() | CONTENTS, max_size=3)


def document(name: str, content: Content) -> IssueFile:
    return IssueFile(name=name, stamp=None, digest="d", entries=content)


@settings(max_examples=1000)
@given(st.lists(CHANGES, max_size=6))
def test_changes_make_what_putting_all_together_makes(
    history: list[dict[str, Content | None]],
) -> None:
    """Whatever files come, go, swap issues, are malformed or claim one name twice."""
    reading = Reading()

    for happened in history:
        changes = {
            name: None if content is None else document(name, content)
            for name, content in happened.items()
            if content is not None or name in reading.documents
        }
        reading = reading.changed(changes)

        documents = [reading.documents[name] for name in sorted(reading.documents)]
        assert reading.index == index(documents)
        assert {name for name, one in changes.items() if one is None}.isdisjoint(reading.documents)


def test_a_change_of_times_alone_changes_no_issue() -> None:
    """What was made from the issues before can go on being used."""
    issue = Issue(id=IssueId("A"), identifier="A", title="t", state="Todo")
    entry = IssueEntry(issue=issue, state_key="todo", digest="", where="A.md")
    before = Reading().changed({"A.md": document("A.md", (entry,))})
    touched = IssueFile(name="A.md", stamp=(1,), digest="d", entries=(entry,))

    after = before.changed({"A.md": touched})

    assert after.documents == {"A.md": touched}
    assert after.index is before.index
