"""Import a workflow file: tell whose it is, make settings and prompts, and say what is lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from sortie.documents import Path, Place, Text
from sortie.model import WorkflowError
from sortie.workflow.compiler import check_prompt
from sortie.workflow.front_matter import Parts, split_workflow
from sortie.workflow.go_templates import from_go
from sortie.workflow.importing.agents import AGENTS
from sortie.workflow.importing.draft import Draft, KeyOutcome, Told
from sortie.workflow.importing.front_matter import written
from sortie.workflow.importing.go_keys import import_go
from sortie.workflow.importing.liquid import from_liquid
from sortie.workflow.importing.symphony_keys import import_symphony
from sortie.workflow.prompts import Prompt

_GO_ACTION = re.compile(r"{{-?\s*(?:[.$]|/\*|(?:if|range|with|end|else)\b)")
_GO_KEYS = ("dispatch", "notifications", "ci_feedback")
_SYMPHONY_KEYS = ("tracker.provider", "tracker.project_slug", "observability")
_BLOCKS = {"acp": ("copilot-cli", "opencode", "agent-client-protocol"), "kiro": ("mock",)}


class Program(StrEnum):
    """Whose workflow file it is."""

    GO = "go"
    SYMPHONY = "symphony"


class Imported(Struct, frozen=True, kw_only=True):
    """A workflow of ours; ``because`` says how it was told whose it was."""

    program: Program
    because: str
    text: str
    told: Sequence[Told]


def import_workflow(
    content: str,
    source: str,
    program: Program | None = None,
    read: Callable[[str], str | None] = lambda _: None,
) -> Imported:
    """Return what a file of another program is here; ``read`` gives the text of a template's file.

    Raises WorkflowError where it cannot be read, or where nobody can tell whose it is.
    """
    parts = split_workflow(content, source)
    errors = tuple(problem for problem in parts.problems if problem.severity == "error")
    if parts.document is None or errors:
        raise WorkflowError(errors or parts.problems)
    because = "as --from says"
    if program is None:
        program, because = _recognized(parts, source)
    draft = Draft(parts.document)
    prompts = _Prompts(parts, content, source, draft.told, program, read)
    if program is Program.GO:
        import_go(draft, prompts.named)
    else:
        import_symphony(draft)
    origins = {
        to: next((key for key in keys if parts.document.get(key)), to)
        for to, keys in _BLOCKS.items()
        if to in draft.new
    }
    front = written(parts.document, content, draft.new, origins)
    told = sorted(draft.told, key=lambda each: _order(each, source))
    return Imported(
        program=program, because=because, text=f"---\n{front}---\n\n{prompts.text()}", told=told
    )


def _order(told: Told, source: str) -> tuple[bool, str, int, int]:
    place = told.place
    return place.source != source, place.source, place.line, place.column


def _recognized(parts: Parts, source: str) -> tuple[Program, str]:
    """Return whose file it is, and what shows that. Raises WorkflowError."""
    root = parts.document
    assert root is not None
    kind = root.at(("agent", "kind"))
    go = [key for key in _GO_KEYS if root.get(key)]
    symphony = [key for key in _SYMPHONY_KEYS if root.at(tuple(key.split(".")))]
    if _GO_ACTION.search(parts.prompts[0].text):
        go.append("Go's syntax in the prompt")
    if root.at(("self_review", "enabled")):
        go.append("self_review.enabled")
    reactions = root.get("reactions")
    if reactions and any(each.get("provider") for each in reactions.children()):
        go.append("a provider of reactions")
    if kind is not None and kind.value in AGENTS and kind.value not in ("kiro", "claude-code"):
        go.append("the agent's kind")
    if kind is None and root.get("codex"):
        symphony.append("codex without agent.kind")
    if bool(go) is not bool(symphony):
        return (Program.GO, ", ".join(go)) if go else (Program.SYMPHONY, ", ".join(symphony))
    seen = (
        f"it has {', '.join(go)}, and {', '.join(symphony)}" if go else "it has no sign of either"
    )
    message = f"is it Go's or Symphony's? {seen}; say it with --from go or --from symphony"
    raise WorkflowError((Place(source=source).problem("", message),))


class _Prompts:
    """The prompt of the file, and those that rules name."""

    def __init__(
        self,
        parts: Parts,
        content: str,
        source: str,
        told: list[Told],
        program: Program,
        read: Callable[[str], str | None],
    ) -> None:
        self._told, self._read, self._program = told, read, program
        self._sections: dict[str, str] = {}
        text = Text(source, content)
        prompt = parts.prompts[0]
        start = sum(len(line) + 1 for line in content.split("\n")[: prompt.line - 1])
        start += prompt.column - 1
        self._main = self._converted(prompt.text, lambda index: text.place(start + index))

    def text(self) -> str:
        """Return the prompt with the sections behind it."""
        made = [
            self._main,
            *(f"--- prompt: {name}\n{body}" for name, body in self._sections.items()),
        ]
        return "\n\n".join(each.strip() for each in made if each.strip()) + "\n"

    def named(self, template: str, at: Path) -> str | None:
        """Convert a template that stands in a file, and return the name that it gets here."""
        body = self._read(template)
        if body is None:
            return None
        text = Text(template, body)
        made = self._converted(body.strip(), text.place)
        if at[1] == "default":
            self._main = made
            return "default"
        stem = template.rpartition("/")[2].partition(".")[0]
        name = re.sub(r"[^\w-]+", "-", stem).strip("-") or "rule"
        while self._sections.get(name, made) != made:
            name = f"{name}-2"
        self._sections[name] = made
        return name

    def _converted(self, template: str, place: Callable[[int], Place]) -> str:
        if self._program is Program.GO:
            made, actions = from_go(template)
            faults = [
                (action.index, f"{action.written} {action.fault}".strip()) for action in actions
            ]
        else:
            made, lost = from_liquid(template)
            faults = list(lost)
        for index, message in faults:
            self._tell(place(index), message)
        for problem in check_prompt(Prompt(source=made)):
            if problem.severity == "error":
                where = place(0)
                self._tell(
                    Place(source=where.source, line=where.line + problem.line - 1, column=1),
                    problem.message,
                )
        return made

    def _tell(self, place: Place, message: str) -> None:
        self._told.append(Told(outcome=KeyOutcome.LOST, place=place, key="prompt", message=message))
