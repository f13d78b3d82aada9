"""``sortie schema``: what a workflow file may hold, for editors."""

from __future__ import annotations

import json

from sortie.cli.output import emit


def schema() -> None:
    """Print a JSON Schema of the front matter, by which editors complete and check it.

    'sortie init' writes it beside the workflow file, which names it in its second line. What only
    'sortie validate' can find is not in it.
    """
    emit(schema_text())


def schema_text() -> str:
    """Return the schema as JSON."""
    from sortie.config.json_schema import json_schema
    from sortie.daemon.workflow_file import schemas

    return json.dumps(json_schema(schemas()), indent=2) + "\n"
