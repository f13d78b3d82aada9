"""structlog, loaded without rich.

structlog imports rich to colour tracebacks, which Sortie renders itself; with it the import takes
nearly twice as long. structlog works without rich where none is found, so every module imports it
from here.
"""

import sys

_is_hidden = "rich" not in sys.modules
if _is_hidden:
    sys.modules["rich"] = None  # type: ignore[assignment]  # the import system reports it missing
import structlog  # noqa: E402

if _is_hidden:
    del sys.modules["rich"]

__all__ = ["structlog"]
