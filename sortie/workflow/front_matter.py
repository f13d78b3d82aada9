"""Split a WORKFLOW.md into its front matter and its prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


_SECTION = re.compile(r"^--- prompt: *(\S*)[ \t]*$", re.MULTILINE)
"""The line that begins a named prompt."""


class Section(Struct, frozen=True, kw_only=True):
    """A prompt of a file, without the white space around it, and where it begins; the first has no
    name. An empty one is placed at the last line before it that is not blank."""

    name: str
    text: str
    line: int
    column: int


class Parts(Struct, frozen=True, kw_only=True):
    """What a WORKFLOW.md consists of.

    ``document`` is None where the front matter cannot be read; ``problems`` say why. The first of
    ``prompts`` is that of the top level; there is none where the front matter does not end.
    """

    document: Node | None
    prompts: tuple[Section, ...] = ()
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
        return Parts(document=None, problems=(problem,))
    document: Node | None = Node(value={}, origin=text, start=opening)
    problems: tuple[Problem, ...]
    if front is None:
        why = _why_none(content[opening:].partition("\n")[0])
        message = f"{why}, so all of the file is taken as the prompt"
        problems = (text.place(opening).problem("", message, "warning"),)
        body = opening
    else:
        read = read_yaml(text, front.start, front.end, RULES)
        problems = tuple(map(_problem, read.faults))
        if read.root is None or read.root.value is not None:
            document = read.root
        body = front.body
    return Parts(document=document, prompts=tuple(_sections(text, body)), problems=problems)


def _sections(text: Text, body: int) -> Iterator[Section]:
    """Yield the prompts that follow the front matter, which ends at ``body``."""
    content, name = text.content, ""
    for begin in (*_SECTION.finditer(content, body), None):
        end = len(content) if begin is None else begin.start()
        prompt = content[body:end]
        start = end - len(prompt.lstrip()) if prompt.strip() else len(content[:end].rstrip()) - 1
        place = text.place(max(start, 0))
        column = place.column if prompt.strip() else 1
        yield Section(name=name, text=prompt.strip(), line=place.line, column=column)
        if begin is not None:
            body, name = begin.end(), begin[1]


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
