"""Split a WORKFLOW.md into its front matter and its prompt."""

from __future__ import annotations

import re

from msgspec import Struct

from sortie.documents import (
    Duplicate,
    Fault,
    Node,
    Text,
    YamlRules,
    read_yaml,
    split_front_matter,
)
from sortie.model import Problem

RULES = YamlRules(depth=40, values=10_000, strict=True)

_KEY = re.compile(r"[A-Za-z_][\w-]*[ \t]*:(?:[ \t]|$)")
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")


class Parts(Struct, frozen=True, kw_only=True):
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


def split_workflow(content: str, source: str) -> Parts:
    """Split a file's text, whose line ends are ``\\n``; ``source`` names it in problems."""
    text = Text(source, content)
    blank = _BLANK_LINES.match(content)
    opening = blank.end() if blank else 0
    try:
        front = split_front_matter(content, opening)
    except ValueError:
        message = "the front matter that begins here does not end; close it with a line ---"
        problem = text.place(opening).problem("", message)
        return Parts(document=None, prompt="", prompt_line=0, problems=(problem,))
    document: Node | None = Node(value={}, origin=text, start=opening)
    problems: tuple[Problem, ...]
    if front is None:
        why = _why_none(content[opening:].partition("\n")[0])
        message = f"{why}, so all of the file is taken as the prompt"
        problems = (text.place(opening).problem("", message, "warning"),)
        prompt = content[opening:]
    else:
        read = read_yaml(text, front.start, front.end, RULES)
        problems = tuple(map(_problem, read.faults))
        if read.root is None or read.root.value is not None:
            document = read.root
        prompt = content[front.body :]
    start = len(content) - len(prompt.lstrip()) if prompt.strip() else len(content.rstrip()) - 1
    begin = text.place(max(start, 0))
    return Parts(
        document=document,
        prompt=prompt.strip(),
        prompt_line=begin.line,
        prompt_column=begin.column if prompt.strip() else 1,
        problems=problems,
    )


def _problem(fault: Fault) -> Problem:
    if isinstance(fault, Duplicate):
        return fault.place.problem(fault.key, f"stands twice; first on line {fault.first.line}")
    return fault.problem


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
