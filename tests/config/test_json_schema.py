"""The JSON Schema says what decoding accepts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sortie.config.json_schema import json_schema
from tests.config.sample import SCHEMAS, decoded

SCHEMA = json_schema(SCHEMAS)
Path = tuple[str, ...]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema refers to, also where it may be null instead."""
    refs = [one["$ref"] for one in (schema, *schema.get("anyOf", ())) if "$ref" in one]
    found: dict[str, Any] = SCHEMA["$defs"][refs[0].rpartition("/")[2]] if refs else schema
    return found


def leaves(schema: dict[str, Any] = SCHEMA, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, inner in schema["properties"].items():
        if "properties" in (found := resolved(inner)):
            yield from leaves(found, (*path, key))
        else:
            options = [kind for kind in found.get("anyOf", [found]) if kind.get("type") != "null"]
            yield (*path, key), options[0] if len(options) == 1 else found


LEAVES = dict(leaves())
BOUNDS = [
    (path, leaf[bound], leaf[bound] + step)
    for path, leaf in LEAVES.items()
    for bound, step in (("minimum", -1), ("maximum", 1))
    if bound in leaf
]
CHOICES = [(path, leaf["enum"]) for path, leaf in LEAVES.items() if "enum" in leaf]


def errors_at(path: Path, value: object) -> list[str]:
    """Decode a good front matter with one setting changed; return the errors about it."""
    document: dict[str, Any] = {
        "tracker": {"kind": "file", "active_states": ["Todo"]},
        "file": {"path": "issues"},
    }
    block = document
    for key in path[:-1]:
        block = block.setdefault(key, {})
    block[path[-1]] = value
    key = ".".join(path)
    problems = decoded(json.dumps(document)).problems
    return [str(p) for p in problems if p.severity == "error" and p.key == key]


@pytest.mark.parametrize(("path", "bound", "beyond"), BOUNDS)
def test_bounds_are_those_of_decoding(path: Path, bound: int, beyond: int) -> None:
    """The last number that the schema takes is accepted, and the next one is not."""
    assert errors_at(path, bound) == []
    assert len(errors_at(path, beyond)) == 1


@pytest.mark.parametrize(("path", "words"), CHOICES)
def test_choices_are_those_of_decoding(path: Path, words: list[str]) -> None:
    """Each word that the schema offers is accepted, and another one is not."""
    assert [errors_at(path, word) for word in words] == [[] for _ in words]
    assert len(errors_at(path, "something else")) == 1


@pytest.mark.parametrize("path", [path for path, leaf in LEAVES.items() if "type" in leaf])
def test_types_are_those_of_decoding(path: Path) -> None:
    """What has a type takes no mapping of other things."""
    assert LEAVES[path]["type"] in ("string", "integer", "number", "boolean", "array", "object")
    assert len(errors_at(path, {"x": {"y": 1}})) == (LEAVES[path]["type"] != "object")


def test_blocks_take_no_other_keys() -> None:
    """Inside a block an unknown key is a mistake; beside the blocks it is a warning."""
    blocks = [resolved(block) for block in SCHEMA["properties"].values()]
    strict = [block.get("additionalProperties") for block in blocks if "properties" in block]

    assert strict.count(False) == len(strict) - 1  # one block of the sample takes what it gets
    assert "additionalProperties" not in SCHEMA


def test_times_have_the_defaults_of_the_file() -> None:
    """Defaults are in milliseconds, as the keys are, and not in the seconds behind them."""
    assert LEAVES["polling", "interval_ms"] == {"type": "integer", "minimum": 1, "default": 30_000}


def test_a_rule_may_set_what_decoding_lets_it_and_no_more() -> None:
    """What is required of a block at the top level is not of a rule's."""
    item = resolved(SCHEMA["properties"]["rules"]["items"])
    blocks = {
        name: shape["anyOf"][0] for name, shape in item["properties"].items() if "anyOf" in shape
    }

    assert {name for name, block in blocks.items() if "required" in block} == set()
    assert set(blocks["tracker"]["properties"]) == {
        "active_states",
        "comments",
        "handoff_state",
        "in_progress_state",
    }
    assert "max_concurrent_agents" not in blocks["agent"]["properties"]
    assert "max_turns" in blocks["agent"]["properties"]
