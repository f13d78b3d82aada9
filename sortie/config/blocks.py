"""Decode one block of a WORKFLOW.md: all its problems, and what can be made of the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sortie.config.context import DecodeContext
from sortie.config.fields import fields_of, is_secret, leaves_of, lookup_of, sections_of
from sortie.config.messages import describe, explain, nearest
from sortie.config.references import Resolved, resolve, unset, unset_warning
from sortie.config.report import Report
from sortie.config.values import LARGEST
from sortie.documents import Node, Path


def decode_block(
    path: Path, model: type[BaseModel], context: DecodeContext, report: Report
) -> BaseModel | None:
    """Decode the block at ``path`` and report every problem.

    Settings with problems become their defaults; None where that cannot be done. Afterwards the
    report's document holds the block with its references looked up.
    """
    node = report.document.at(path)
    if node is None:
        node = Node(value={}, origin=report.nearest(path).where)
    elif not isinstance(node.value, Mapping):
        report.error(node, path, f"needs a mapping, not {describe(node.value)}")
        node = replace(node, value={})
    decoding = _Decoding(path=path, model=model, context=context, report=report, node=node)
    decoding.drop_unknown_keys()
    decoding.look_up()
    report.replace(path, decoding.node)
    block = decoding.validate()
    report.replace(path, decoding.node)  # rules count items as the block has them
    return block


class _Decoding(Struct, kw_only=True):
    path: Path
    model: type[BaseModel]
    context: DecodeContext
    report: Report
    node: Node
    unset: dict[Path, tuple[Node, list[str]]] = field(default_factory=dict)

    def drop_unknown_keys(self) -> None:
        self.node = self._known(self.node, self.path, self.model)

    def _known(self, node: Node, path: Path, model: type[BaseModel]) -> Node:
        fields = fields_of(model)
        for key, entry in node.entries().items():
            if key not in fields:
                message = f"unknown key; {nearest(key, fields)}"
                self.report.error(entry.key or entry, (*path, key), message)
                node = node.without_entry(key)
                continue
            if inner := sections_of(model).get(key):
                node = node.with_entry(key, self._known(entry, (*path, key), inner))
        return node

    def look_up(self) -> None:
        """Look up the references of every setting; what is unset or wrong is dropped."""
        self.node = self._looked_up(self.node, self.path, self.model)

    def _looked_up(self, node: Node, path: Path, model: type[BaseModel]) -> Node:
        sections = sections_of(model)
        for key, info in fields_of(model).items():
            entry, lookup = node.entries().get(key), lookup_of(info)
            if entry is not None and key in sections and isinstance(entry.value, Mapping):
                inner = self._looked_up(entry, (*path, key), sections[key])
                node = node.with_entry(key, inner)
            if entry is None or lookup is None:
                continue
            found = resolve(entry, lookup, self.context)
            self._tell(found, entry, (*path, key))
            if is_secret(info):
                self.report.secret_variables += found.used
            if found.node is None:
                node = node.without_entry(key)
            else:
                node = node.with_entry(key, found.node)
        return node

    def _tell(self, found: Resolved, entry: Node, path: Path) -> None:
        for node, message in found.warnings:
            self.report.warning(node, path if node is entry else _inside(path, node), message)
        for node, message in found.wrong:
            self.report.error(node, path if node is entry else _inside(path, node), message)
        if found.unset:
            self.unset[path] = (entry, found.unset)

    def validate(self) -> BaseModel | None:
        """Validate, drop what is wrong and validate again, until nothing more is found."""
        block = None
        while True:
            try:
                block = self.model.model_validate_json(_to_json(self.node.plain()), strict=True)
            except ValidationError as exc:
                wrong = {self._reported(error) for error in exc.errors(include_url=False)}
                dropped = [self._drop(path) for path in sorted(wrong, key=len)]
                if not any(dropped):
                    break
            else:
                break
        for path, (entry, names) in self.unset.items():
            self.report.warning(entry, path, unset_warning(names))
        return block

    def _drop(self, path: Path) -> bool:
        """Drop a key, or one item of its list, and tell whether it was there.

        An item is left out of the node, whose other items remember where they were written.
        """
        entry = self.node.entries().get(str(path[0])) if path else None
        if entry is None:
            return False
        if len(path) == 1:
            self.node = self.node.without_entry(str(path[0]))
            return True
        kept = tuple(
            item
            for position, item in enumerate(entry.items())
            if (position if item.index is None else item.index) != path[1]
        )
        self.node = self.node.with_entry(str(path[0]), replace(entry, value=kept))
        return len(kept) < len(entry.items())

    def _reported(self, error: ErrorDetails) -> Path:
        """Report an error of pydantic's and return what in this block it is about: a key, or a
        key and the position of an item as written; () for the block as a whole."""
        loc = error["loc"]
        if not loc:
            self._about_block(explain(error, None, shown=False))
            return ()
        if "item" in error.get("ctx", {}):
            loc = (*loc, error["ctx"]["item"])
        at = loc if error["type"] == "missing" else self._written(loc)
        path = (*self.path, *self.node.as_written(at))
        about = path[len(self.path) :][: 2 if self._is_item(loc) else 1]
        if self.report.is_blamed(path):
            return about
        if error["type"] == "missing" and path in self.unset:
            entry, names = self.unset.pop(path)
            self.report.error(entry, path, f"is required, but {unset(names)}")
            return about
        node = self._empty(loc) or self.node.at(self._written(loc)) or self.node
        shown = not self._holds_secret(loc)
        self.report.error(node, path, explain(error, node.plain(), shown=shown))
        return about

    def _holds_secret(self, loc: Path) -> bool:
        """Tell whether a location is a secret, or a block with one."""
        model: type[BaseModel] | None = self.model
        for key in map(str, loc):
            if model is None or key not in fields_of(model):
                return False
            if is_secret(fields_of(model)[key]):
                return True
            model = sections_of(model).get(key)
        return model is not None and any(is_secret(info) for _, info in leaves_of(model))

    def _is_item(self, loc: Path) -> bool:
        return len(loc) > 1 and isinstance(loc[1], int) and self.node.at(loc[:2]) is not None

    def _empty(self, loc: Path) -> Node | None:
        """Return the node of a key that was written without a value."""
        entry = self.node.get(str(loc[0]))
        if entry is None or entry.value is not None or entry.key is None:
            return None
        return replace(entry.key, value=None)

    def _written(self, loc: Path) -> Path:
        """Return as much of a location as was written; the rest names a type, or is missing."""
        return next(loc[:end] for end in range(len(loc), -1, -1) if self.node.at(loc[:end]))

    def _about_block(self, message: str) -> None:
        """Report what is wrong with several settings at the last of them that is mentioned."""
        mentioned = [key for key in self.node.entries() if key in message]
        at = mentioned[-1:] or []
        path = (*self.path, *at)
        self.report.error(self.report.nearest(path), path, message)


def _inside(path: Path, node: Node) -> Path:
    """Return the path of an item of a list, or of an entry of a mapping."""
    return (*path, node.index or 0 if node.key is None else str(node.key.value))


def _to_json(plain: Any) -> str:
    return json.dumps(_tamed(plain))


def _tamed(value: Any) -> Any:
    """Replace whole numbers that JSON cannot carry; no setting accepts what replaces them."""
    match value:
        case bool():
            return value
        case int() if abs(value) > LARGEST:
            return math.inf
        case list():
            return [_tamed(item) for item in value]
        case dict():
            return {key: _tamed(item) for key, item in value.items()}
        case _:
            return value
