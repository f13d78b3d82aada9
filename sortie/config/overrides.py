"""Lay values from outside WORKFLOW.md over its front matter: flags, environment, env file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from pydantic.fields import FieldInfo

from sortie.config.context import DecodeContext, Override
from sortie.config.fields import (
    fields_of,
    is_list,
    is_mapping,
    leaves_of,
    parts_of,
    sections_of,
)
from sortie.config.messages import misspelt, nearest
from sortie.config.references import names_in
from sortie.config.settings import Settings
from sortie.documents import Node, Place, Scalar
from sortie.model import Problem
from sortie.model.texts import UNUSABLE

_SECTIONS = {
    name: model
    for name, model in sections_of(Settings).items()
    if name in ("tracker", "polling", "workspace", "agent", "server")
}

_INHERITED = frozenset(
    {
        "SORTIE_ATTEMPT",
        "SORTIE_ISSUE_ID",
        "SORTIE_ISSUE_IDENTIFIER",
        "SORTIE_RUN_ID",
        "SORTIE_SSH_HOST",
        "SORTIE_WORKSPACE",
    }
)
"""Variables of a run; a daemon started inside a run inherits them."""


def _targets() -> dict[str, tuple[tuple[str, ...], FieldInfo]]:
    found: dict[str, tuple[tuple[str, ...], FieldInfo]] = {
        "SORTIE_DB_PATH": (("db_path",), Settings.model_fields["db_path"]),
        "SORTIE_ISOLATION": (("isolation",), Settings.model_fields["isolation"]),
    }
    for section, model in _SECTIONS.items():
        for path, info in leaves_of(model, (section,)):
            if is_mapping(info):
                continue
            found[f"SORTIE_{'_'.join(path).upper()}"] = (path, info)
    return found


TARGETS: Mapping[str, tuple[tuple[str, ...], FieldInfo]] = _targets()
"""Which setting each override of the environment sets."""


def overlay(
    document: Node, context: DecodeContext, blocks: Collection[str] = ()
) -> tuple[Node, tuple[Problem, ...]]:
    """Return the front matter with the overrides in it, and what is odd about them.

    An empty value overrides nothing.
    ``blocks`` are the names of the adapters' blocks.
    """
    problems: list[Problem] = []
    for override, path, info in _overrides(context):
        if not override.text.strip():
            continue
        if unusable := UNUSABLE.search(override.text):
            what = "a NUL character" if unusable[0] == "\x00" else "bytes that are no UTF-8"
            problems.append(override.place.problem(".".join(path), f"contains {what}"))
            continue
        document = _put(document, path, _node(override, info))
    problems += _unknown(context, blocks, frozenset(_referred(document)))
    return document, tuple(problems)


def _overrides(context: DecodeContext) -> Iterator[tuple[Override, tuple[str, ...], FieldInfo]]:
    for name, (path, info) in TARGETS.items():
        if context.env.get(name):
            place = Place(source="environment", name=name)
            yield Override(text=context.env[name], place=place), path, info
        elif name in context.env_file:
            yield context.env_file[name], path, info
    for dotted, text in context.flags.items():
        section, _, key = dotted.partition(".")
        model = sections_of(Settings)[section]
        place = Place(source="command line", name=dotted)
        yield Override(text=text, place=place), (section, key), fields_of(model)[key]


def _node(override: Override, info: FieldInfo) -> Node:
    place, text = override.place, override.text.strip()
    if is_list(info):
        words = [word.strip() for word in text.split(",") if word.strip()]
        items = (Node(value=w, origin=place, index=i) for i, w in enumerate(words))
        return Node(value=tuple(items), origin=place)
    return Node(value=_scalar(text, info), origin=place)


def _scalar(text: str, info: FieldInfo) -> Scalar:
    parts = parts_of(info)
    if bool in parts and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if (int in parts or float in parts) and re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    if float in parts and re.fullmatch(r"\d{1,15}\.\d{1,15}", text, re.ASCII):
        return float(text)
    return text


def _put(document: Node, path: tuple[str, ...], leaf: Node) -> Node:
    if len(path) == 1:
        return document.with_entry(path[0], leaf)
    below = document.at(path[:1]) or Node(value={}, origin=document.place)
    return document.with_entry(path[0], _put(below, path[1:], leaf))


def _unknown(
    context: DecodeContext, blocks: Collection[str], referred: Collection[str]
) -> Iterator[Problem]:
    known = {*TARGETS, *_INHERITED, *referred}
    sections = {name.upper() for name in (*sections_of(Settings), *blocks)}
    places = {name: line.place for name, line in context.env_file.items()}
    places |= {name: Place(source="environment", name=name) for name in context.env}
    for name, place in sorted(places.items()):
        if name.startswith("SORTIE_") and name not in known:
            section = name.removeprefix("SORTIE_").split("_", 1)[0]
            if hint := _hint(name, section, sections):
                yield place.problem("", hint, "warning")


def _hint(name: str, section: str, sections: Collection[str]) -> str | None:
    """Say why a name that is no override's could be meant as one, None where it is not."""
    if section.lower() in _SECTIONS:
        return f"sets no setting; {nearest(name, TARGETS.keys())}"
    if section in sections:
        return (
            f"sets nothing: only {', '.join(_SECTIONS)}, db_path and isolation can be set like this"
        )
    meant = misspelt(name, TARGETS)
    return f'sets no setting; did you mean "{meant}"?' if meant else None


def _referred(node: Node) -> Iterator[str]:
    """Yield the variables that a front matter looks up, wherever it may."""
    match node.value:
        case str() as text:
            yield from names_in(text)
        case tuple() as items:
            for item in items:
                yield from _referred(item)
        case Mapping() as entries:
            for entry in entries.values():
                yield from _referred(entry)
