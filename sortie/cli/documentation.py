"""Where the documentation stands: it is installed with the program."""

from __future__ import annotations

from pathlib import Path

import sortie

PACKAGE = Path(sortie.__file__).parent


def pages(package: Path = PACKAGE) -> Path | None:
    """Return the page to begin with, None where there is none: a wheel carries the pages in the
    package, a checkout has them beside it."""
    for place in (package, package.parent):
        if (place / "docs" / "operating.md").is_file():
            return place / "README.md"
    return None
