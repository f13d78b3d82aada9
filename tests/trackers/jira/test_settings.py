"""What is wrong with the settings of a Jira, told offline and at its place."""

from __future__ import annotations

from importlib import util
from pathlib import Path

import pytest

from sortie.daemon.workflow_file import schemas
from sortie.model import TrackerError, TrackerErrorKind, WorkflowError
from sortie.testing.tracker import context_of
from sortie.trackers.jira import ADAPTER
from sortie.workflow.loader import load

WORKFLOW = """\
---
tracker:
  kind: jira
  endpoint: {endpoint}
  project: {project}
  api_key: {api_key}
  query_filter: {query_filter}
  active_states: [To Do]
  handoff_state: Review
  label_states: {labels}
jira: {block}
kiro: {{trust_all_tools: true}}
---
Work on {{{{ issue.identifier }}}}.
"""

GOOD = {
    "endpoint": "https://example.atlassian.net",
    "project": "PROJ",
    "api_key": "me@example.org:$JIRA_TOKEN",
    "query_filter": "labels = agent",
    "labels": "[]",
    "block": "{}",
}


def found(tmp_path: Path, **changes: str) -> list[str]:
    """Return what is found in a workflow file with these settings."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text(WORKFLOW.format(**GOOD | changes))
    env = {"HOME": "/home/me", "JIRA_TOKEN": "token-7c0ffee"}
    try:
        problems = load(path, schemas=schemas(), env=env).warnings
    except WorkflowError as error:
        problems = error.problems
    return [str(problem).removeprefix(f"{path}:") for problem in problems]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"endpoint": "https://api.atlassian.com/ex/jira/1122-aabb"},
        {"endpoint": "https://api.atlassian.com/ex/jira/1122-aabb", "api_key": "$JIRA_TOKEN"},
        {"endpoint": "https://jira.example.org/jira", "api_key": "$JIRA_TOKEN"},
        {"endpoint": "http://127.0.0.1:8080", "api_key": "$JIRA_TOKEN"},
        {"query_filter": "'(labels = \"a) OR (b\") OR assignee = currentUser()'"},
        {"labels": "[to-build, prüfen]"},
        {"block": "{priorities: {Urgent: 1}, blocked_by: waits for, deployment: cloud}"},
    ],
)
def test_good_settings_have_nothing_to_tell(tmp_path: Path, changes: dict[str, str]) -> None:
    """Every way in which a Jira can be reached."""
    assert found(tmp_path, **changes) == []


BAD: dict[str, tuple[dict[str, str], list[str]]] = {
    "a page of the site": (
        {"endpoint": "https://example.atlassian.net/jira/software"},
        [
            "4:13: tracker.endpoint: needs the address of the site alone: "
            "https://example.atlassian.net"
        ],
    ),
    "a route": (
        {"endpoint": "https://jira.example.org/rest/api/2"},
        ["4:13: tracker.endpoint: needs the address before /rest, which Sortie adds itself"],
    ),
    "the gateway without a site": (
        {"endpoint": "https://api.atlassian.com"},
        [
            "4:13: tracker.endpoint: needs the id of the site: "
            "https://api.atlassian.com/ex/jira/CLOUD-ID"
        ],
    ),
    "a cloud that is called a data center": (
        {"block": "{deployment: data-center}"},
        [
            '4:13: tracker.endpoint: is one of Jira Cloud, and jira.deployment is "data-center"',
        ],
    ),
    "a token alone for a site of the cloud": (
        {"api_key": "$JIRA_TOKEN"},
        [
            "6:12: tracker.api_key: needs the form email:token for a site of Jira Cloud, "
            "such as me@example.org:$TOKEN"
        ],
    ),
    "half a key": (
        {"api_key": "'me@example.org:'"},
        ["6:12: tracker.api_key: needs both sides of its colon: email:token, or user:password"],
    ),
    "a name in the place of a key": (
        {"project": "My Project"},
        ['5:12: tracker.project: "My Project" is no key of a project: the PROJ of PROJ-7'],
    ),
    "a filter that would break out": (
        {"query_filter": "labels = a) OR (project = OTHER"},
        [
            "7:17: tracker.query_filter: cannot be a condition: it closes a bracket that it did "
            "not open; remove the ')'"
        ],
    ),
    "a label with a blank": (
        {"labels": "[check, to build]"},
        [
            '10:25: tracker.label_states[1]: "to build" can be no label of Jira, '
            "which has no blanks and 255 characters at most"
        ],
    ),
    "a word that is none": (
        {"block": "{deployment: server}"},
        [
            '11:20: jira.deployment: needs auto, cloud or data-center, not the text "server"',
        ],
    ),
}


@pytest.mark.parametrize(("changes", "problems"), BAD.values(), ids=BAD)
def test_bad_settings_are_told(
    tmp_path: Path, changes: dict[str, str], problems: list[str]
) -> None:
    """Each where it stands, with what is accepted, and without the key."""
    told = found(tmp_path, **changes)

    assert [problem.split("; did you")[0] for problem in told] == problems
    assert "token-7c0ffee" not in "".join(told)


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """The address, the project and the key are needed."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text("---\ntracker:\n  kind: jira\n  active_states: [Todo]\n---\nwork\n")

    with pytest.raises(WorkflowError) as told:
        load(path, schemas=schemas(), env={"HOME": "/home/me"})

    keys = {problem.key for problem in told.value.problems if problem.severity == "error"}
    assert keys == {"tracker.endpoint", "tracker.project", "tracker.api_key"}


async def test_missing_libraries_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check, and by the tracker before it does anything."""
    whole = util.find_spec

    def without(name: str, package: str | None = None) -> object:
        return None if name == "md_adf" else whole(name, package)

    monkeypatch.setattr(util, "find_spec", without)

    told = found(tmp_path)
    context = context_of(ADAPTER, {}, tmp_path, endpoint="http://x", project="P", api_key="k")
    with pytest.raises(TrackerError) as refused:
        async with ADAPTER.open(context):
            pass

    assert told == [
        "3:9: tracker.kind: needs libraries that are not installed: pip install 'sortie[jira]'"
    ]
    assert refused.value.kind is TrackerErrorKind.INVALID
    assert "pip install 'sortie[jira]'" in str(refused.value)
