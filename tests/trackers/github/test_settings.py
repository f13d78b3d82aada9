"""What ``sortie validate`` says of the settings of GitHub, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.workflow_file import schemas
from sortie.model import WorkflowError
from sortie.workflow.loader import load

GOOD = """\
---
tracker:
  kind: github
  project: octo-org/hello-world
  api_key: $GITHUB_KEY
  active_states: [Todo, In Progress]
  terminal_states: [Done]
  handoff_state: Review
github: {}
kiro: {trust_all_tools: true}
---
Work on {{ issue.identifier }}.
"""


def told(tmp_path: Path, text: str, key: str = "ghp_0123456789") -> list[str]:
    """Return what is found wrong, each as ``line: key: message``."""
    path = tmp_path / "WORKFLOW.md"
    path.write_text(text)
    try:
        found = load(path, schemas=schemas(), env={"HOME": "/home/me", "GITHUB_KEY": key}).warnings
    except WorkflowError as exc:
        found = exc.problems
    return [f"{p.line}: {p.key}: {p.message}" for p in found if "max_sessions" not in p.message]


def test_good_settings_have_nothing_to_be_said_about(tmp_path: Path) -> None:
    """Nothing is asked of GitHub for that."""
    assert told(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("octo-org/hello-world", "hello-world", '4: tracker.project: "hello-world" is no OWNER/'),
        ("octo-org/hello-world", "a/..", '4: tracker.project: "a/.." is no OWNER/REPOSITORY'),
        ("octo-org/hello-world", "a/b/c", "4: tracker.project: "),
        ("  project:", "  endpoint: github.example\n  project:", "4: tracker.endpoint: needs"),
        ("  project:", "  endpoint: https://github.com\n  project:", "4: tracker.endpoint: is wh"),
        (
            "  project:",
            "  endpoint: https://ghe.example.org\n  project:",
            "4: tracker.endpoint: is no API of an Enterprise Server, which is at "
            "https://ghe.example.org/api/v3",
        ),
        (
            "  project:",
            "  endpoint: http://ghe.example.org/api/v3\n  project:",
            "4: tracker.endpoint: has no https",
        ),
        ("  project:", "  query_filter: is:pr\n  project:", '4: tracker.query_filter: has "is:"'),
        ("[Todo, In Progress]", '["a,b"]', '6: tracker.active_states[0]: "a,b" can be no label'),
        ("[Done]", "[]", "7: tracker.terminal_states: is empty"),
        ("Review", f"{'x' * 51}", "8: tracker.handoff_state: "),
        ("{}", "{unlabeled_state: Gone}", '9: github.unlabeled_state: "Gone" is none of active'),
        ("{}", "{not_planned_states: [Todo]}", '9: github.not_planned_states[0]: "Todo" is not'),
        ("{}", "{installation_id: 7}", "9: github.installation_id: belongs to a GitHub App"),
        ("{}", "{app_id: 7}", "5: tracker.api_key: needs the private key"),
        ("{}", "{app_id: x}", "9: github.app_id: needs a whole number"),
        ("{}", "{page: 7}", "9: github.page: unknown key"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """In one sentence, offline."""
    (found,) = told(tmp_path, GOOD.replace(old, new))

    assert found.startswith(message)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\nabc", "is a private key, which only a GitHub App has"),
        ("ghp_0123 456789", "has white space inside"),
    ],
)
def test_a_key_of_the_wrong_kind_is_told_without_it(tmp_path: Path, key: str, message: str) -> None:
    """No part of it is shown."""
    (found,) = told(tmp_path, GOOD, key)

    assert found.startswith(f"5: tracker.api_key: {message}")
    assert "0123" not in found
    assert "abc" not in found
