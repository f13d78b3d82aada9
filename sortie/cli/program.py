"""What somebody types to run this program once more."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

_NAME = "sortie"


def command_name() -> str:
    """Return the program as a shell finds it from here: its name, or the path it was started by."""
    started = sys.argv[0]
    if os.path.basename(started) == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m {_NAME}"
    if os.path.basename(started) != _NAME or not os.access(started, os.X_OK):
        return _NAME
    found = shutil.which(_NAME)
    if found is not None and os.path.samefile(found, started):
        return _NAME
    return shlex.quote(started)
