"""Write a front matter anew, with the lines and the comments of what is as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from sortie.documents import Node, Text, read_yaml, split_front_matter
from sortie.workflow.front_matter import RULES


class _Lines(Struct, frozen=True):
    """The lines of a key: comments from ``start``, itself from ``key``, up to ``end``."""

    start: int
    key: int
    end: int


def written(old: Node, content: str, new: Mapping[str, Any], origins: Mapping[str, str]) -> str:
    """Return the settings ``new`` as YAML; ``old`` was read from the file's content.

    ``origins`` names the blocks that have become blocks of another name.
    """
    text = Text("", content)
    front = split_front_matter(content, len(content) - len(content.lstrip("\n \t")))
    extent = (0, 0) if front is None else (text.place(front.start).line, text.place(front.end).line)
    made = _entries(old, ["", *content.split("\n")], new, extent, origins)
    read = read_yaml(Text("", made), 0, len(made), RULES)
    is_read = read.root is not None and not read.faults and read.root.plain() == new
    return made if is_read else _yaml(new, 0)  # as with an alias whose anchor is gone


def _entries(
    old: Node,
    lines: Sequence[str],
    new: Mapping[str, Any],
    extent: tuple[int, int],
    origins: Mapping[str, str],
) -> str:
    """Return the entries of a mapping that stands in these lines of the file."""
    found = _lines_of(old, lines, extent)
    order = sorted(
        new, key=lambda key: found[k].key if (k := origins.get(key, key)) in found else 1e9
    )
    margin = _margin(lines[next(iter(found.values())).key]) if found else 0
    made = ""
    for key in order:
        at, before = found.get(origins.get(key, key)), old.get(key)
        made += "" if at is None else _joined(lines[at.start : at.key])
        value = new[key]
        if at is None or before is None or key in origins:
            made += _yaml({key: value}, margin)
        elif before.plain() == value:
            made += _joined(lines[at.key : at.end])
        elif isinstance(value, dict) and _lines_of(before, lines, (at.key + 1, at.end)):
            made += _joined(lines[at.key : at.key + 1])
            made += _entries(before, lines, value, (at.key + 1, at.end), {})
        else:
            made += _yaml({key: value}, margin)
    return made


def _lines_of(mapping: Node, lines: Sequence[str], extent: tuple[int, int]) -> dict[str, _Lines]:
    """Return the lines of each key; nothing where they are not each on lines of their own."""
    if mapping.flow or not isinstance(mapping.value, dict):
        return {}
    keys = [(name, node.key.place) for name, node in mapping.value.items() if node.key]
    if len({place.line for _, place in keys}) < len(keys):
        return {}
    starts: list[int] = []
    for _, place in keys:
        least = keys[len(starts) - 1][1].line + 1 if starts else extent[0]
        start = place.line
        while start > least and _is_comment(lines[start - 1], place.column):
            start -= 1
        starts.append(start)
    ends = [*starts[1:], extent[1]]
    if any(place.line < extent[0] for _, place in keys):
        return {}
    return {
        name: _Lines(start, place.line, end)
        for (name, place), start, end in zip(keys, starts, ends, strict=True)
    }


def _is_comment(line: str, column: int) -> bool:
    """Tell whether a line is blank, or a comment no further in than a key of this column."""
    bare = line.lstrip()
    return not bare or (bare[0] == "#" and _margin(line) < column)


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _yaml(value: Mapping[str, Any], margin: int) -> str:
    out = StringIO()
    yaml = YAML()
    yaml.width = 100_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.dump(_literal(value), out)
    return "".join(
        f"{' ' * margin}{line}" if line.strip() else line
        for line in out.getvalue().splitlines(True)
    )


def _literal(value: Any) -> Any:
    """Return a value whose texts of several lines are written as such."""
    match value:
        case dict():
            return {key: _literal(each) for key, each in value.items()}
        case list():
            return [_literal(each) for each in value]
        case str() if "\n" in value:
            return LiteralScalarString(value)
        case _:
            return value
