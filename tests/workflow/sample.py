"""Files and contexts for tests of workflows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sortie.model import Issue, IssueId, WorkflowError
from sortie.workflow.loader import Workflow, load
from sortie.workflow.prompts import PromptContext
from tests.config.sample import SCHEMAS

FRONT_MATTER = """\
---
tracker:
  kind: file
  active_states: [Todo]
  handoff_state: Review
file:
  path: issues
robot:
  trust_all: true
---
"""
ENV = {"HOME": "/home/me"}

ISSUE = Issue(id=IssueId("1"), identifier="DEMO-1", title="Mend it", state="Todo")


def context(issue: Issue = ISSUE, *, turn: int = 1, attempt: int = 0) -> PromptContext:
    """Return the context of a turn."""
    return PromptContext(
        issue=issue,
        attempt=attempt,
        turn_number=turn,
        max_turns=3,
        is_continuation=turn > 1,
        workspace_path="/w/DEMO-1",
        host="local",
    )


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and return its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def loaded(path: Path, env: Mapping[str, str] = ENV) -> Workflow:
    """Load a workflow that is good."""
    return load(path, schemas=SCHEMAS, env=env)


def problems(path: Path, env: Mapping[str, str] = ENV, env_file: Path | None = None) -> list[str]:
    """Return what is wrong with a workflow, its directory left out."""
    try:
        found = load(path, schemas=SCHEMAS, env=env, env_file=env_file).warnings
    except WorkflowError as exc:
        found = exc.problems
    return [str(problem).replace(f"{path.parent}/", "") for problem in found]
