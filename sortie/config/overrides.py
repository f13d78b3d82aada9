"""Lay values from outside WORKFLOW.md over its front matter: flags, environment, env file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from sortie.config.fields import (
    fields_of,
    is_list,
    is_mapping,
    leaves_of,
    parts_of,
    sections_of,
)
from sortie.config.messages import nearest
from sortie.config.schemas import Override, Surroundings
from sortie.config.settings import Settings
from sortie.config.tree import Node, Place, Scalar
from sortie.model import Problem

_SECTIONS = {
    name: model
    for name, model in sections_of(Settings).items()
    if name in ("tracker", "polling", "workspace", "agent", "server")
}

_INHERITED = frozenset({"SORTIE_WORKSPACE"})
"""Variables of a run that begin like a section; a daemon started inside a run inherits them."""


def _targets() -> dict[str, tuple[tuple[str, ...], FieldInfo]]:
    found: dict[str, tuple[tuple[str, ...], FieldInfo]] = {
        "SORTIE_DB_PATH": (("db_path",), Settings.model_fields["db_path"])
    }
    for section, model in _SECTIONS.items():
        for path, info in leaves_of(model, (section,)):
            if is_mapping(info):
                continue
            found[f"SORTIE_{'_'.join(path).upper()}"] = (path, info)
    return found


TARGETS: Mapping[str, tuple[tuple[str, ...], FieldInfo]] = _targets()
"""Which setting each override of the environment sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlaid:
    """The front matter with the overrides in it, and what is odd about them."""

    document: Node
    problems: tuple[Problem, ...]


def overlay(document: Node, around: Surroundings) -> Overlaid:
    """Set every overridden key; an empty value overrides nothing."""
    problems: list[Problem] = []
    for override, path, info in _overrides(around):
        if not override.text.strip():
            continue
        if unusable := re.search("[\x00\ud800-\udfff]", override.text):
            what = "a NUL character" if unusable[0] == "\x00" else "bytes that are no UTF-8"
            problems.append(override.place.problem(".".join(path), f"contains {what}"))
            continue
        document = _put(document, path, _node(override, info))
    problems += _unknown(around)
    return Overlaid(document=document, problems=tuple(problems))


def _overrides(around: Surroundings) -> Iterator[tuple[Override, tuple[str, ...], FieldInfo]]:
    for name, (path, info) in TARGETS.items():
        if around.env.get(name):
            place = Place(source="environment", name=name)
            yield Override(text=around.env[name], place=place), path, info
        elif name in around.env_file:
            yield around.env_file[name], path, info
    for dotted, text in around.flags.items():
        section, _, key = dotted.partition(".")
        model = sections_of(Settings)[section]
        place = Place(source="command line", name=dotted)
        yield Override(text=text, place=place), (section, key), fields_of(model)[key]


def _node(override: Override, info: FieldInfo) -> Node:
    place, text = override.place, override.text.strip()
    if is_list(info):
        words = [word.strip() for word in text.split(",") if word.strip()]
        items = (Node(value=w, place=place, index=i) for i, w in enumerate(words))
        return Node(value=tuple(items), place=place, key=place)
    return Node(value=_scalar(text, info), place=place, key=place)


def _scalar(text: str, info: FieldInfo) -> Scalar:
    parts = parts_of(info)
    if bool in parts and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if (int in parts or float in parts) and re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
        return int(text)
    return text


def _put(document: Node, path: tuple[str, ...], leaf: Node) -> Node:
    if len(path) == 1:
        return document.with_entry(path[0], leaf)
    below = document.at(path[:1]) or Node(value={}, place=document.place)
    return document.with_entry(path[0], _put(below, path[1:], leaf))


def _unknown(around: Surroundings) -> Iterator[Problem]:
    known = TARGETS.keys() | _INHERITED
    sections = {name.upper() for name in sections_of(Settings)}
    places = {name: line.place for name, line in around.env_file.items()}
    places |= {name: Place(source="environment", name=name) for name in around.env}
    for name, place in sorted(places.items()):
        section = name.removeprefix("SORTIE_").split("_", 1)[0]
        if not name.startswith("SORTIE_") or section not in sections or name in known:
            continue
        if section.lower() in _SECTIONS:
            hint = f"sets no setting; {nearest(name, TARGETS.keys())}"
        else:
            hint = f"sets nothing: only {', '.join(_SECTIONS)} and db_path can be set like this"
        yield place.problem("", hint, "warning")
