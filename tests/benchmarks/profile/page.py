"""Write profiles into ``docs/performance.md``, in the place of those that are there.

python -m tests.benchmarks.profile.page FILE

FILE is what ``python -m tests.benchmarks.profile --json`` wrote.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.page import PAGE, where_measured
from tests.benchmarks.profile.profiles import Profile
from tests.benchmarks.profile.report import as_markdown

_PROFILES = re.compile(r"^Profiled on .*?(?=^#)", re.DOTALL | re.MULTILINE)


def main(arguments: list[str]) -> int:
    """Obey a command line and return the exit code."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write(f"{__doc__}")
        return 2
    results = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if results["short"]:
        sys.stderr.write("these are results of --short, whose numbers say nothing\n")
        return 1
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return 0


def filled(page: str, results: Mapping[str, Any]) -> str:
    """Return a page with these profiles, and where they are from."""
    (_,) = _PROFILES.findall(page)
    profiles = [Profile(**told) for told in results["profiles"]]
    text = f"Profiled on {where_measured(results['machine'])}\n\n{as_markdown(profiles)}\n"
    return _PROFILES.sub(lambda _: text, page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
