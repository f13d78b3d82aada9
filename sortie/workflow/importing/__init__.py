"""Turn the workflow files of other programs into ours; pure but for what is read by a function."""

from sortie.workflow.importing.draft import KeyOutcome, Told
from sortie.workflow.importing.workflow import Imported, Program, import_workflow

__all__ = ["Imported", "KeyOutcome", "Program", "Told", "import_workflow"]
