"""Look up ``$VAR``, expand ``~`` and make paths absolute, as each setting's ``Lookup`` says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from pathlib import PurePosixPath

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.config.context import DecodeContext
from sortie.documents import Node
from sortie.model.texts import UNUSABLE

_REFERENCE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))", re.ASCII)
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,15})?", re.ASCII)


class Lookup(Enum):
    """How ``$VAR`` and ``${VAR}`` are looked up in a setting; put it into ``Annotated``."""

    WHOLE = auto()  # where the reference is the whole value
    NUMBER = auto()  # as WHOLE; the variable's text is read as a number
    ANYWHERE = auto()
    NEEDED = auto()  # as ANYWHERE; a variable that is not set is an error, as nothing may stand in
    ONLY = auto()  # nothing but a reference is accepted
    ONLY_OR_TRACKER = auto()  # as ONLY, or the word ``tracker``
    PATH = auto()  # as WHOLE; then ``~`` is expanded and a relative path made absolute
    HOST_PATH = auto()  # as PATH, but ``~`` stays: it is the home directory on a remote host


class Resolved(Struct):
    """A setting after its references were looked up.

    ``node`` is None where it counts as missing. ``unset`` are variables that are not set or
    empty, ``used`` all that were looked up, ``wrong`` is what is not accepted.
    """

    node: Node | None
    unset: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    warnings: list[tuple[Node, str]] = field(default_factory=list)
    wrong: list[tuple[Node, str]] = field(default_factory=list)


def names_in(text: str) -> list[str]:
    """Return the variables that a text refers to, in order."""
    return [found[1] or found[2] for found in _REFERENCE.finditer(text)]


def resolve(node: Node, lookup: Lookup, context: DecodeContext) -> Resolved:
    """Look up the references of a setting, or of each item of a list or mapping of settings."""
    if isinstance(node.value, dict):
        return _resolve_mapping(node, lookup, context)
    if not isinstance(node.value, tuple):
        return _resolve_text(node, lookup, context)
    result = Resolved(node)
    kept = []
    for item in node.value:
        found = _resolve_text(item, lookup, context)
        result.used += found.used
        result.wrong += found.wrong
        result.warnings += found.warnings
        if found.unset:
            result.warnings.append((item, unset_warning(found.unset, "item")))
        if found.node is not None:
            kept.append(found.node)
    result.node = replace(node, value=tuple(kept))
    return result


def _resolve_mapping(node: Node, lookup: Lookup, context: DecodeContext) -> Resolved:
    result = Resolved(node)
    for key, item in node.entries().items():
        found = _resolve_text(item, lookup, context)
        result.used += found.used
        result.wrong += found.wrong
        result.warnings += found.warnings
        if found.unset:
            result.warnings.append((item, unset_warning(found.unset, "entry")))
        kept = node.without_entry(key) if found.node is None else node.with_entry(key, found.node)
        node = kept
    result.node = node
    return result


def unset(names: Sequence[str]) -> str:
    """Say of one or several variables that they are not set."""
    listed = " and ".join(f"${name}" for name in names)
    return f"{listed} {'is' if len(names) == 1 else 'are'} not set or empty"


def unset_warning(names: Sequence[str], what: str = "key") -> str:
    """Return the warning about a key or item whose variables are not set."""
    return f"{unset(names)}, so the {what} counts as missing"


def _resolve_text(node: Node, lookup: Lookup, context: DecodeContext) -> Resolved:
    if not isinstance(node.value, str):
        return Resolved(node)
    if node.place.is_override:
        return _finished(Resolved(node), lookup, context)
    text = node.value
    names = names_in(text)
    whole = _REFERENCE.fullmatch(text) is not None
    is_only = lookup in (Lookup.ONLY, Lookup.ONLY_OR_TRACKER)
    if is_only and not whole and (lookup is Lookup.ONLY or text != "tracker"):
        message = "needs a reference such as $TOKEN; the token itself must not stand in the file"
        return Resolved(None, wrong=[(node, message)])
    result = Resolved(node)
    if whole or (names and lookup in (Lookup.ANYWHERE, Lookup.NEEDED)):
        values = {name: context.lookup(name) for name in names}
        result.used = names
        result.unset = [name for name in values if not values[name]]
        if result.unset and lookup is Lookup.NEEDED:
            needed = f"{unset(result.unset)}, and nothing else may take its place"
            return Resolved(None, used=names, wrong=[(node, needed)])
        if result.unset:
            return replace(result, node=None)
        if any(UNUSABLE.search(value) for value in values.values()):
            message = f"{text} holds bytes that are no UTF-8"
            return replace(result, node=None, wrong=[(node, message)])
        text = _REFERENCE.sub(lambda found: values[found[1] or found[2]], text)
        result.node = replace(node, value=text)
    elif names:
        message = f"${names[0]} is taken as it stands: only a whole value can be a reference"
        result.warnings.append((node, message))
    return _finished(result, lookup, context)


def _finished(result: Resolved, lookup: Lookup, context: DecodeContext) -> Resolved:
    assert result.node is not None
    text = str(result.node.value)
    if lookup is Lookup.NUMBER and result.used and _NUMBER.fullmatch(text.strip()):
        return replace(result, node=replace(result.node, value=float(text)))
    if lookup is Lookup.HOST_PATH and (text == "~" or text.startswith("~/")):
        return result
    is_path = lookup in (Lookup.PATH, Lookup.HOST_PATH)
    return _as_path(result, context) if is_path else result


def _as_path(result: Resolved, context: DecodeContext) -> Resolved:
    assert result.node is not None
    text = str(result.node.value)
    if not text.strip():
        return replace(result, node=None, wrong=[(result.node, "must not be blank")])
    if text.startswith("~"):
        user, _, rest = text.partition("/")
        if user != "~":
            message = f"needs a path; only ~ is expanded, not {user}"
            return replace(result, node=None, wrong=[(result.node, message)])
        if not context.home:
            message = "begins with ~, but HOME is not set; write the whole path"
            return replace(result, node=None, wrong=[(result.node, message)])
        text = str(PurePosixPath(context.home, rest.lstrip("/")))
    return replace(result, node=replace(result.node, value=str(context.directory / text)))
