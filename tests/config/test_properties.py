"""Decoding is total."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sortie.config.decode import decode
from sortie.config.overrides import TARGETS
from sortie.config.settings import Settings
from sortie.documents import Node, Place
from tests.config.sample import SCHEMAS, around

PLACE = Place(source="W", line=2, column=1)
KEY = Node(value="key", origin=PLACE)

_sections = {name: info.annotation for name, info in Settings.model_fields.items()}
_keys = sorted(
    {
        info.alias or name
        for section in _sections.values()
        for name, info in getattr(section, "model_fields", {}).items()
    }
)

names = st.sampled_from([*_sections, "file", "robot", "board"]) | st.text(max_size=5)
keys = st.sampled_from([*_keys, "path", "others", "trust", "level"]) | st.text(max_size=5)
texts = st.text(max_size=8) | st.sampled_from(["$A", "${A}", "$", "~", "~x", "file", "kiro", "\0"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts | st.just(10**400)


def node(value: object) -> Node:
    """Return a value as a tree, all of it in one place."""
    match value:
        case list():
            return Node(value=tuple(node(item) for item in value), origin=PLACE, key=KEY)
        case dict():
            entries = {key: node(item) for key, item in value.items()}
            return Node(value=entries, origin=PLACE, key=KEY)
        case None | bool() | int() | float() | str():
            return Node(value=value, origin=PLACE, key=KEY)
    raise AssertionError(value)


values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
documents = values | st.dictionaries(names, st.dictionaries(keys, values, max_size=4) | values)
environments = st.dictionaries(st.sampled_from([*TARGETS, "A", "SORTIE_AGENT_X"]), texts)


@given(documents, environments)
def test_decoding_never_raises(document: object, env: dict[str, str]) -> None:
    """Whatever is written, there are either settings or errors, and never both or neither."""
    result = decode(node(document), schemas=SCHEMAS, context=around(env))

    errors = [problem for problem in result.problems if problem.severity == "error"]
    assert (result.settings is None) == bool(errors)
    assert all(str(problem) for problem in result.problems)


@given(st.dictionaries(st.sampled_from(["tracker", "server"]), st.dictionaries(keys, values)))
def test_secrets_are_never_shown(document: dict[str, dict[str, object]]) -> None:
    """A key or token, right or wrong, stands in no problem and in no settings' text."""
    secret = "hunter2hunter2"
    document.setdefault("tracker", {})["api_key"] = secret
    document.setdefault("server", {})["auth_token"] = secret

    result = decode(node(document), schemas=SCHEMAS, context=around())

    assert secret not in "".join(map(str, result.problems))
    assert secret not in repr(result.settings)
