"""The prompts that rules name and templates include: parts of WORKFLOW.md, and files beside it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from jinja2 import TemplateSyntaxError, nodes
from msgspec import Struct, field
from msgspec.structs import replace

from sortie.config.messages import nearest
from sortie.documents import Node, Place
from sortie.model import Problem
from sortie.workflow.compiler import CRASHES, check_prompt, too_long
from sortie.workflow.files import FileRefused, read_text
from sortie.workflow.front_matter import Section
from sortie.workflow.prompts import Prompt
from sortie.workflow.render_budget import RENDER_SECONDS
from sortie.workflow.sandbox import PromptEnvironment

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_FILES = 100


class NamedPrompts(Struct, kw_only=True):
    """Finds the prompts of a WORKFLOW.md by name; it may block.

    ``prompts`` are those that were asked for, ``files`` those that were read or sought, and
    ``problems`` what is wrong with names, sections and files.
    """

    path: Path
    source: str
    sections: tuple[Section, ...]
    prompts: dict[str, Prompt] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def find(self, document: Node) -> None:
        """Find the prompt of the top level, "", and what rules name and templates include."""
        self._look_at_sections()
        rules = document.at(("rules",))
        for at, rule in enumerate(rules.items() if rules else ()):
            node = rule.at(("prompt",))
            name = node.value if node is not None else None
            if node is not None and isinstance(name, str) and (wrong := self._known(name.strip())):
                self.problems.append(node.place.problem(f"rules[{at}].prompt", wrong))
        waiting = ["", *(section.name for section in self.sections), *self.prompts]
        seen: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in seen or self._known(name) is not None:
                continue
            seen.add(name)
            waiting += _included(self.prompts[name])
        parts = tuple(sorted((name, prompt) for name, prompt in self.prompts.items() if name))
        self.prompts = {n: replace(p, parts=parts) for n, p in self.prompts.items()}
        for name, prompt in self.prompts.items():
            if not name or prompt.source.strip():
                self.problems += check_prompt(prompt)

    def _look_at_sections(self) -> None:
        names: set[str] = set()
        for section in self.sections[1:]:
            place = Place(source=self.source, line=section.line, column=1)
            key = f"prompt {section.name}".strip()
            if _NAME.fullmatch(section.name) is None:
                message = "the name of a prompt needs letters, digits, - and _, at most 64"
                self.problems.append(place.problem(key, message))
            elif section.name in names:
                self.problems.append(place.problem(key, "there are two prompts of this name"))
            elif not section.text:
                self.problems.append(place.problem(key, "is empty"))
            names.add(section.name)

    def _known(self, name: str) -> str | None:
        """Have a prompt among ``prompts``; return why that cannot be."""
        if name in self.prompts:
            return None
        for section in self.sections:
            if section.name == name:
                self.prompts[name] = Prompt(
                    source=section.text,
                    line=section.line,
                    column=section.column,
                    path=self.source,
                    key=f"prompt {name}".strip(),
                )
                return None
        if "/" not in name and "." not in name:
            known = [section.name for section in self.sections if section.name]
            hint = nearest(name, known) if known else "begin it with a line --- prompt: " + name
            return f'there is no prompt "{name}"; {hint}'
        return self._read(name)

    def _read(self, name: str) -> str | None:
        """Read a prompt from a file below the directory of WORKFLOW.md."""
        parts = PurePosixPath(name)
        if parts.is_absolute() or ".." in parts.parts or "\0" in name:
            return f'"{name}" is no path below the directory of the workflow file'
        if len(self.files) >= _MOST_FILES:
            return f"more than {_MOST_FILES} files are included"
        path = self.path.parent / name
        self.files.append(path)
        shown = str(PurePosixPath(self.source).parent / name)
        try:
            text = read_text(path, shown)
        except FileRefused as exc:
            return str(exc)
        if not text.strip():
            return f"{shown} is empty"
        start = len(text) - len(text.lstrip())
        line = text.count("\n", 0, start) + 1
        column = start - (text.rfind("\n", 0, start) + 1) + 1
        self.prompts[name] = Prompt(
            source=text.strip(), line=line, column=column, path=shown, key=f"prompt {name}"
        )
        return None


def _included(prompt: Prompt) -> Iterator[str]:
    """Yield what a template includes; what is wrong with the template is said elsewhere."""
    if "include" not in prompt.source:
        return
    environment = PromptEnvironment(time.monotonic() + RENDER_SECONDS)
    try:
        if too_long(environment, prompt.source) > 0:
            return
        tree = environment.parse(prompt.source)
    except (TemplateSyntaxError, *CRASHES):
        return
    for node in tree.find_all(nodes.Include):
        match node.template:
            case nodes.Const(value=str() as name):
                yield name
            case _:
                pass
