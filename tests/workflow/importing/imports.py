"""Imports a file of another program, and loads what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sortie.daemon.options import RunOptions
from sortie.daemon.workflow_file import load_workflow
from sortie.workflow.importing import Imported, KeyOutcome, Program, import_workflow
from sortie.workflow.loader import Workflow

ENVIRON = {
    "TRACKER_TOKEN": "me@example.org:secret-of-mine",
    "GITHUB_TOKEN": "ghp_secret",
    "LINEAR_API_KEY": "lin_api_secret",
    "LINEAR_TEAM": "ENG",
    "SORTIE_TOKEN": "a-long-secret-of-the-server",
}


def imported(
    content: str, program: Program | None = None, files: Mapping[str, str] | None = None
) -> Imported:
    """Import a text as ``old.md``; ``files`` are the templates beside it."""
    return import_workflow(content, "old.md", program, (files or {}).get)


def loaded(made: Imported) -> Workflow:
    """Load what was made, as ``sortie validate`` does. Raises WorkflowError."""
    options = RunOptions(
        workflow=Path("/srv/team/WORKFLOW.md"), environ=ENVIRON, content=made.text.encode()
    )
    return load_workflow(options)


def lines(made: Imported, outcome: KeyOutcome) -> list[str]:
    """Return what is told of one outcome, without the file's name."""
    return [
        str(each).removeprefix("old.md:").strip() for each in made.told if each.outcome is outcome
    ]
