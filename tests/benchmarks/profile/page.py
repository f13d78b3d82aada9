"""Write profiles into ``docs/performance.md``, in the place of those that are there.

python -m tests.benchmarks.profile.page FILE

FILE is what ``python -m tests.benchmarks.profile --json`` wrote.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any

from tests.benchmarks.page import where_measured, write_page
from tests.benchmarks.profile.profiles import Profile
from tests.benchmarks.profile.report import as_markdown

_PROFILES = re.compile(r"^Profiled on .*?(?=^#)", re.DOTALL | re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    return write_page(arguments, __doc__ or "", filled)


def filled(page: str, results: Mapping[str, Any]) -> str:
    """Return a page with these profiles, and where they are from."""
    (_,) = _PROFILES.findall(page)
    profiles = [Profile(**told) for told in results["profiles"]]
    text = f"Profiled on {where_measured(results['machine'])}\n\n{as_markdown(profiles)}\n"
    return _PROFILES.sub(lambda _: text, page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
