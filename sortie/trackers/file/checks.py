"""What ``sortie doctor`` looks at where issues are files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sortie.model.checks import Check, CheckResult, failed, passed
from sortie.resources import run_in_thread
from sortie.trackers.file.issue_files import IssueFiles
from sortie.trackers.file.issue_index import FilesRead


def file_checks(files: IssueFiles) -> Sequence[Check]:
    """Return the checks of a directory of issues, or of a file that holds a list of them."""

    async def read() -> CheckResult:
        reading = await run_in_thread(files.look, FilesRead(), 0.0, abandon_on_cancel=True)
        found = reading.index.found
        if not found and not reading.index.complaints:
            return failed(
                f"there is no issue in {files.path}",
                "write one: a Markdown file with title and state in its front matter",
            )
        return passed(f"{len(found)} issue{'' if len(found) == 1 else 's'} in {files.path}")

    async def write() -> CheckResult:
        folder = await run_in_thread(files.folder, abandon_on_cancel=True)
        if os.access(folder, os.W_OK | os.X_OK):
            return passed(f"issues in {folder} can be changed")
        return failed(
            f"{folder} cannot be written, so that no issue can be moved or commented on",
            "make the directory writable for the user that Sortie runs as",
        )

    remedy = "look at file.path, and who may read it"
    return (
        Check(name="read", ask=read, remedy=remedy),
        Check(name="write", ask=write, needs=("read",)),
    )
