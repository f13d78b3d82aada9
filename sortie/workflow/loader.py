"""Load a WORKFLOW.md: settings, prompt and warnings, or every error at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct, field

from sortie.config.context import DecodeContext
from sortie.config.decode import decode
from sortie.config.schemas import Schemas
from sortie.config.settings import Settings
from sortie.documents import Node, Place, dotted
from sortie.model import Problem, WorkflowError
from sortie.workflow.compiler import check_prompt
from sortie.workflow.env_file import EnvFile, read_env_file
from sortie.workflow.excerpts import with_excerpts
from sortie.workflow.files import FileRefused, read_text
from sortie.workflow.front_matter import split_workflow
from sortie.workflow.named_prompts import NamedPrompts
from sortie.workflow.prompts import Prompt
from sortie.workflow.surroundings import surroundings


def work_tree_around(directory: Path) -> Path | None:
    """Return the top of the innermost git work tree that holds a directory, None where none does.

    The directory need not exist. A ``.git`` of its own counts too.
    """
    real = Path(os.path.realpath(directory))
    return next((place for place in (real, *real.parents) if _has_git(place)), None)


def _has_git(place: Path) -> bool:
    try:
        return os.path.lexists(place / ".git")
    except (OSError, ValueError):
        return False


TEMPLATES = (
    "repository.branch",
    "repository.message",
    "forge.title",
    "forge.body",
    "self_review.prompt",
)
"""The settings that are templates."""

_ROOT_VARIABLE = "SORTIE_WORKSPACE_ROOT"

_OF_OPENTELEMETRY = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.common")


class Workflow(Struct, frozen=True, kw_only=True):
    """A WORKFLOW.md that can be used; ``path`` is absolute. ``prompts`` are those with a name, and
    ``files`` those that they were read from; ``env_file`` holds further settings."""

    path: Path
    settings: Settings
    prompt: Prompt
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    env_file: Path | None = None
    warnings: tuple[Problem, ...] = ()

    def prompt_of(self, settings: Settings) -> Prompt:
        """Return the prompt that the settings of a rule, or of the top level, want."""
        return self.prompts[settings.prompt] if settings.prompt else self.prompt


def load(
    path: Path,
    *,
    schemas: Schemas,
    env: Mapping[str, str],
    env_file: Path | None = None,
    flags: Mapping[str, str] | None = None,
    content: bytes | None = None,
) -> Workflow:
    """Read and check a WORKFLOW.md; it may block. Raises WorkflowError with every problem.

    ``env`` is the environment, ``env_file`` a file of further ``SORTIE_*`` lines, ``flags`` are
    values of the command line by dotted key, such as ``server.port``; they win over all else.
    ``content`` is the file's where it does not stand at ``path``.
    """
    source = str(path)
    lines = EnvFile(lines={}, problems=()) if env_file is None else read_env_file(env_file)
    context = surroundings(path, env, lines.lines, flags or {})
    try:
        text = read_text(path, source, content)
        parts = split_workflow(text, source)
    except FileRefused as exc:
        raise WorkflowError((exc.problem, *lines.problems)) from exc
    named = NamedPrompts(path=path.absolute(), source=source, sections=parts.prompts)
    problems = [*parts.problems, *lines.problems]
    settings = None
    if parts.document is not None:
        decoded = decode(parts.document, schemas=schemas, context=context)
        settings = decoded.settings
        problems += decoded.problems
        if settings is not None:
            problems += _about_root(settings, parts.document, context)
            problems += _about_libraries(settings, parts.document)
    if parts.prompts:
        named.find(parts.document or Node(value={}, origin=Place(source=source)))
        problems += named.problems
    if settings is not None and parts.document is not None:
        for template in templates_of(settings, parts.document, source):
            problems += check_prompt(template)
    problems.sort(key=lambda problem: (problem.path != source, problem.line, problem.column))
    shown = with_excerpts(problems, text, source, parts.document)
    if settings is None or any(problem.severity == "error" for problem in problems):
        raise WorkflowError(shown, tuple(named.files))
    return Workflow(
        path=path.absolute(),
        settings=settings,
        prompt=named.prompts.pop(""),
        prompts=named.prompts,
        files=tuple(named.files),
        env_file=env_file,
        warnings=shown,
    )


def templates_of(settings: Settings, document: Node, source: str) -> Iterator[Prompt]:
    """Yield the settings that are templates and stand in the file, those of rules too."""
    rules = document.at(("rules",))
    placed = [(settings, document, "")]
    for at, rule in enumerate(settings.rules):
        assert rules is not None
        placed.append((rule.settings, rules.items()[at], f"rules[{at}]."))
    for one, node, before in placed:
        yield from _templates_in(one, node, source, before)


def _templates_in(settings: Settings, document: Node, source: str, before: str) -> Iterator[Prompt]:
    for key in TEMPLATES:
        section, name = key.split(".")
        node = document.at((section, name))
        if node is not None and node.place.line:
            place = node.place
            yield Prompt(
                source=getattr(getattr(settings, section), name),
                line=place.line,
                column=place.column,
                path=source,
                key=before + key,
            )


def _is_installed(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:  # what it is a part of is missing
        return False


def _about_libraries(settings: Settings, document: Node) -> Iterator[Problem]:
    """Yield an error where runs are to have pods or spans, rows a server, people messages or agents
    tools, and the library for that is missing."""
    needed: dict[tuple[str | int, ...], tuple[object, tuple[str, ...], str]] = {
        ("worker", "kubernetes"): (settings.worker.kubernetes, ("kr8s",), "kubernetes"),
        ("store", "url"): (settings.store.url, ("psycopg",), "postgres"),
        ("tools",): (any(one.tools for one in settings.every()) or None, ("mcp",), "tools"),
        ("traces",): (settings.traces, _OF_OPENTELEMETRY, "traces"),
        **{
            ("notifications", at, "url"): (target.url, ("apprise",), "notifications")
            for at, target in enumerate(settings.notifications)
        },
    }
    for path, (wanted, libraries, extra) in needed.items():
        if wanted is not None and not all(map(_is_installed, libraries)):
            place = (document.at(path) or document).place
            message = f"needs a library that is not installed: pip install 'sortie[{extra}]'"
            yield place.problem(dotted(path), message, "error")


def _about_root(settings: Settings, document: Node, context: DecodeContext) -> Iterator[Problem]:
    """Yield a warning where workspaces on this machine would lie inside a git work tree."""
    if settings.worker.hosts:
        return
    top = work_tree_around(Path(settings.workspace.root))
    if top is not None:
        if context.lookup(_ROOT_VARIABLE):
            place = Place(source="environment", name=_ROOT_VARIABLE)
        else:
            place = (document.at(("workspace", "root")) or document).place
        message = (
            f"lies inside the git work tree {top}; git sees nothing of it from a workspace, but "
            "other tools may, and git clean there removes workspaces; name a directory outside"
        )
        yield place.problem("workspace.root", message, "warning")
