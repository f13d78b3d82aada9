"""What ``sortie validate`` says of GitLab's settings, without asking GitLab."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.model import WorkflowError
from sortie.trackers.gitlab.query_filter import flaws, parsed
from sortie.trackers.gitlab.settings import api_of

WORKFLOW = """\
---
tracker:
  kind: gitlab
  project: {project}
  endpoint: {endpoint}
  api_key: $GITLAB_TOKEN
  active_states: [{active}]
  terminal_states: [Done]
  handoff_state: Review
  query_filter: {query}
gitlab: {block}
kiro: {{trust_all_tools: true}}
---
Work.
"""
GOOD = {
    "project": "acme/web",
    "endpoint": "https://gitlab.example.org",
    "active": "Todo",
    "query": "labels=backend&not[labels]=wontfix",
    "block": "{scope: project}",
}


def problems(tmp_path: Path, text: str) -> list[str]:
    """Return what is wrong with a workflow file."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text(text)
    environ = {"GITLAB_TOKEN": "glpat-0123456789", "HOME": str(tmp_path)}
    options = RunOptions(workflow=path, environ=environ)
    try:
        found = load_workflow(options).warnings
    except WorkflowError as error:
        found = error.problems
    return [str(problem).removeprefix(f"{path}:") for problem in found]


def test_good_settings_have_no_problem(tmp_path: Path) -> None:
    """Nor has a number, a group, or an address with a path."""
    assert problems(tmp_path, WORKFLOW.format(**GOOD)) == []
    for change in (
        {"project": "'278964'"},
        {"project": "acme", "block": "{scope: group, label_prefix: 'status::'}"},
        {"endpoint": "https://example.org/git/api/v4"},
        {"active": "opened, Todo"},
        {"block": "{priorities: {urgent: 1}, confidential: true, blockers: false}"},
    ):
        assert problems(tmp_path, WORKFLOW.format(**GOOD | change)) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"project": "web"},
            "4:12: tracker.project: needs the path of a project with its group, such as "
            "group/name; for all projects of a group set gitlab.scope to group",
        ),
        (
            {"project": "https://gitlab.com/acme/web"},
            "4:12: tracker.project: needs the path alone, such as group/project, not a whole "
            "address",
        ),
        (
            {"project": "acme/my web"},
            "4:12: tracker.project: needs the path or the number of a project, such as "
            "group/sub/name",
        ),
        (
            {"active": "Todo, 'a, b'"},
            '7:25: tracker.active_states[1]: "a, b" has a comma, which no label of GitLab\'s has',
        ),
        (
            {"active": "Closed"},
            '7:19: tracker.active_states[0]: "closed" is the state of closed issues, on which '
            "nobody works",
        ),
        (
            {"active": "'status::Todo'", "block": "{label_prefix: 'status::'}"},
            '7:19: tracker.active_states[0]: "status::Todo" begins with gitlab.label_prefix, which '
            "is put before it anyhow",
        ),
        (
            {"query": "labelz=backend"},
            '10:17: tracker.query_filter: has "labelz", which GitLab would ignore, listing every '
            "issue; nearest: labels",
        ),
        (
            {"query": "state=all"},
            '10:17: tracker.query_filter: has "state", which Sortie sets by itself; leave it out',
        ),
        (
            {"block": "{scope: team}"},
            '11:17: gitlab.scope: needs project or group, not the text "team"',
        ),
        (
            {"block": "{priorities: {urgent: 7}}"},
            "11:31: gitlab.priorities.urgent: needs a whole number from 1 to 4, not 7",
        ),
        (
            {"block": "{label_prefix: 'a,b'}"},
            "11:24: gitlab.label_prefix: has a comma, which no label of GitLab's has",
        ),
    ],
)
def test_what_is_wrong_is_told_at_its_place(
    tmp_path: Path, change: dict[str, str], told: str
) -> None:
    """In one sentence, and without a secret."""
    found = problems(tmp_path, WORKFLOW.format(**GOOD | change))

    assert len(found) == 1
    assert told in found[0]
    assert "glpat" not in found[0]


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    """A project and a token, and terminal states, without which no closed issue is finished."""
    text = """\
---
tracker: {kind: gitlab, active_states: [Todo], handoff_state: Review}
kiro: {trust_all_tools: true}
---
Work.
"""

    found = problems(tmp_path, text)

    assert sorted(line.partition(": ")[2] for line in found) == [
        "tracker.api_key: is required by the gitlab tracker",
        "tracker.project: is required by the gitlab tracker",
        'warning: tracker.terminal_states: is empty: name "closed" in it, or a closed issue is '
        "never finished",
    ]


def test_a_filter_is_read_as_part_of_an_address() -> None:
    """Values are decoded, known keys are kept, and all that is wrong is told."""
    assert parsed("?labels=a%2Cb&search=x+y&page=2&foo=1") == (("labels", "a,b"), ("search", "x y"))
    assert parsed(None) == ()
    assert list(flaws("labels=a&labels=b&milestone=")) == [
        'has "labels" twice, of which GitLab takes one; labels are separated by commas',
        'has "milestone" without a value',
    ]
    assert len(list(flaws("nothing"))) == 1


def test_the_address_of_the_api_may_be_given_itself() -> None:
    """GitLab may stand below a path."""
    assert api_of("https://gitlab.com") == "https://gitlab.com/api/v4"
    assert api_of("https://example.org/git/") == "https://example.org/git/api/v4"
    assert api_of("https://example.org/git/api/v4/") == "https://example.org/git/api/v4"
