"""What commands are tested with: workflow files, issues, runs, processes."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import sortie

SOURCE = Path(sortie.__file__).parents[1]

WORKFLOW = """\
---
tracker:
  kind: file
  active_states: [Todo, Doing]
  terminal_states: [Done]
  handoff_state: Review
file:
  path: issues
workspace:
  root: work
kiro:
  trust_all_tools: true
---
Do {{ issue.identifier }}: {{ issue.title }}
"""

FIVE_MISTAKES = """\
---
tracker:
  kind: file
  active_states: Todo
  active_state: [Todo]
file:
  path: issues
polling:
  interval_ms: soon
agent:
  max_turns: 0
server:
  port: 70000
---
Do it
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a command left."""

    code: int
    out: str
    err: str


def is_ours(variable: str) -> bool:
    """Tell whether a variable of the environment changes what commands do."""
    return variable.startswith(
        ("SORTIE_", "KIRO_", "COLUMNS", "XDG_STATE_HOME", "PYTHONUNBUFFERED")
    )


def write_issue(directory: Path, name: str, **fields: object) -> None:
    """Write a Markdown issue below ``directory``."""
    values = {"title": f"Title of {name}", "state": "Todo"} | fields
    front = "\n".join(f"{key}: {value}" for key, value in values.items())
    (directory / "issues").mkdir(exist_ok=True)
    (directory / "issues" / f"{name}.md").write_text(f"---\n{front}\n---\nText of {name}.\n")


def run_program(*arguments: str) -> Ran:
    """Run the command line as a process of its own, to its end."""
    environment = {key: value for key, value in os.environ.items() if not is_ours(key)}
    done = subprocess.run(
        [sys.executable, "-m", "sortie", *arguments],
        env=environment | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)
