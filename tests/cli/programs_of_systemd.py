"""Stand-ins for systemctl, systemd-analyze and loginctl, which keep what they are asked."""

from __future__ import annotations

import os
from pathlib import Path

PROGRAM = """\
#!/bin/sh
echo "${0##*/} $*" >> "{log}"
case "${0##*/} $*" in
{answers}
esac
exit 0
"""


class FakeSystemd:
    """A directory with the programs; ``asked`` is what was asked, without the first looks."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "systemd-bin"
        self._log = folder / "systemd.log"
        self.bin.mkdir()
        self._answers: dict[str, str] = {}
        self.answer("systemctl*is-system-running", "echo running")
        self.answer("loginctl*", "echo Linger=yes")

    @property
    def search_path(self) -> str:
        """A search path on which they come first."""
        return f"{self.bin}{os.pathsep}{os.environ['PATH']}"

    def answer(self, question: str, command: str) -> None:
        """Have a question, a pattern of the shell, answered by a command."""
        self._answers.pop(question, None)
        self._answers = {question: command, **self._answers}
        cases = "\n".join(
            f"{pattern.replace(' ', chr(92) + ' ')}) {does} ;;"
            for pattern, does in self._answers.items()
        )
        text = PROGRAM.replace("{log}", str(self._log)).replace("{answers}", cases)
        for name in ("systemctl", "systemd-analyze", "loginctl"):
            program = self.bin / name
            program.write_text(text)
            program.chmod(0o755)

    def asked(self) -> list[str]:
        """Return what systemctl was told to do, in its order."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return [
            line.removeprefix("systemctl ")
            for line in lines
            if line.startswith("systemctl ") and "is-system-running" not in line
        ]
