"""Split a WORKFLOW.md into its front matter and its prompt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from frontmatter.default_handlers import BaseHandler

from sortie.config import Node
from sortie.model import Problem
from sortie.workflow.places import Lines
from sortie.workflow.yaml_tree import TreeReader, YamlRefused

_KEY = re.compile(r"[A-Za-z_][\w-]*[ \t]*:(?:[ \t]|$)")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a WORKFLOW.md consists of.

    ``document`` is None where the front matter cannot be read; ``problems`` say why. The prompt
    is without the white space around it and begins at ``prompt_line`` and ``prompt_column`` of the
    file; an empty one is placed at the last line that is not blank.
    """

    document: Node | None
    prompt: str
    prompt_line: int
    prompt_column: int = 1
    problems: tuple[Problem, ...] = ()


class LocatedYaml(BaseHandler):
    """Front matter of YAML 1.2 that begins at ``start`` and whose values know their places.

    ``problems`` are those found so far.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)

    def __init__(self, lines: Lines, start: int) -> None:
        super().__init__()
        self.problems: tuple[Problem, ...] = ()
        self.document: Node | None = None
        self._lines = lines
        self._start = start

    def split(self, text: str) -> tuple[str, str]:
        """Return front matter and the rest; all of it is the rest where none begins.

        Raises ValueError where it begins and does not end.
        """
        return super().split(text) if self.detect(text) else ("", text)

    def load(self, fm: str) -> dict[str, Any]:
        """Return the entries as located nodes; the whole is in ``document``."""
        reader = TreeReader(self._lines, self._start)
        try:
            self.document = reader.read(fm)
        except YamlRefused as exc:
            self.problems = (*reader.problems, exc.problem)
            return {}
        self.problems = tuple(reader.problems)
        return dict(self.document.entries())


def split_workflow(text: str, source: str) -> Parts:
    """Split a file's text, whose line ends are ``\\n``; ``source`` names it in problems."""
    lines = Lines(source, text)
    blank = _BLANK_LINES.match(text)
    body = text[blank.end() if blank else 0 :]
    opening = len(text) - len(body)
    first_line = body.partition("\n")[0]
    handler = LocatedYaml(lines, opening + len(first_line))
    try:
        front_matter, prompt = handler.split(body)
    except ValueError:
        message = "the front matter that begins here does not end; close it with a line ---"
        problem = lines.place(opening).problem("", message)
        return Parts(document=None, prompt="", prompt_line=0, problems=(problem,))
    handler.load(front_matter)
    document = handler.document
    problems = handler.problems
    if not handler.detect(body):
        message = f"{_why_none(first_line)}, so all of the file is taken as the prompt"
        problems = (lines.place(opening).problem("", message, "warning"), *problems)
    if document is not None and document.value is None:
        document = Node(value={}, place=lines.place(opening))
    start = len(text) - len(prompt.lstrip()) if prompt.strip() else len(text.rstrip()) - 1
    begin = lines.place(max(start, 0))
    return Parts(
        document=document,
        prompt=prompt.strip(),
        prompt_line=begin.line,
        prompt_column=begin.column if prompt.strip() else 1,
        problems=problems,
    )


def _why_none(first_line: str) -> str:
    """Say why a file has no front matter, from its first line that is not blank."""
    line = first_line.strip()
    if line.startswith("---"):
        fault = "indented" if first_line[0] in " \t" else "followed by something on its line"
        return f"--- is {fault} and begins no front matter"
    if line.startswith("+++"):
        return "+++ begins front matter of TOML, and only YAML between two lines of --- is read"
    if line.startswith("{"):
        return "settings as JSON need a line --- before and after them"
    if _KEY.match(line):
        return "the settings that begin here lack a line --- before (and one after) them"
    return "there is no front matter (settings between two lines of ---)"
