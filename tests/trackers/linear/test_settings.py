"""What ``sortie validate`` says of the settings of a Linear tracker, offline and with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.workflow_file import schemas
from sortie.model import WorkflowError
from sortie.workflow.loader import load

WORKFLOW = """\
---
tracker:
  kind: linear
  api_key: $LINEAR_API_KEY
  active_states: [Todo]
  handoff_state: Review
{keys}
kiro: {{trust_all_tools: true}}
---
Do it
"""
KEY = "lin_api_0123456789"


def found(tmp_path: Path, keys: str, key: str = KEY) -> list[str]:
    """Return what is found about these keys of ``tracker`` and of other blocks."""
    path = tmp_path / "W.md"
    path.write_text(WORKFLOW.format(keys=keys))
    env = {"HOME": str(tmp_path), "LINEAR_API_KEY": key}
    try:
        problems = load(path, schemas=schemas(), env=env).warnings
    except WorkflowError as error:
        problems = error.problems
    return [str(problem).removeprefix(f"{path}:") for problem in problems]


def test_settings_that_can_be_used(tmp_path: Path) -> None:
    """The key of a team in any case, and a filter over several lines."""
    keys = '  project: eng\n  query_filter: |\n    {"labels":\n      {"name": {"eq": "agent"}}}'

    assert found(tmp_path, keys) == []


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", ["3:3: tracker.project: is required by the linear tracker"]),
        (
            "  project: ENG-12",
            [
                "7:12: tracker.project: needs the key of a team, such as ENG where issues are"
                " called ENG-12; did you mean ENG?"
            ],
        ),
        (
            "  project: ENG\n  query_filter: '{\"labels\": '",
            [
                "8:17: tracker.query_filter: is no JSON (line 1, column 12: Expecting value);"
                ' write it as in {"labels": {"name": {"eq": "agent"}}}'
            ],
        ),
        (
            "  project: ENG\n  query_filter: '[1]'",
            [
                "8:17: tracker.query_filter: needs to be a JSON object, an IssueFilter;"
                ' write it as in {"labels": {"name": {"eq": "agent"}}}'
            ],
        ),
        (
            '  project: ENG\n  query_filter: \'{"title": {}, "title": {}}\'',
            [
                '8:17: tracker.query_filter: has "title" twice in one object; put the two into'
                ' "and": [...]'
            ],
        ),
        (
            '  project: ENG\n  query_filter: \'{"label": {}, "team": {}}\'',
            [
                '8:17: warning: tracker.query_filter: "label" is no field of Linear\'s IssueFilter'
                " that is known here; did you mean labels?",
                '8:17: warning: tracker.query_filter: "team" is chosen by tracker.project already;'
                " is a further condition meant?",
            ],
        ),
        (
            "  project: ENG\nlinear:\n  page_size: 251\n  auth: token",
            [
                "9:14: linear.page_size: needs a number of at most 250, not 251",
                '10:9: linear.auth: needs auto, key or oauth, not the text "token"',
            ],
        ),
    ],
)
def test_what_cannot_be_used_is_told_at_its_place(
    tmp_path: Path, keys: str, expected: list[str]
) -> None:
    """Each mistake by its line, column and key."""
    assert found(tmp_path, keys) == expected


def test_a_key_with_its_scheme_word_is_told_without_showing_it(tmp_path: Path) -> None:
    """Linear takes personal keys without one."""
    (told,) = found(tmp_path, "  project: ENG", key=f"Bearer {KEY}")

    assert "tracker.api_key: needs the key alone" in told
    assert KEY not in told
