"""The blocks of adapters in a WORKFLOW.md: which one is chosen, and what each says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ValidationError

from sortie.config.blocks import decode_block
from sortie.config.context import DecodeContext
from sortie.config.messages import describe, nearest
from sortie.config.report import Report
from sortie.config.schemas import BlockSchema, Schemas
from sortie.documents import Node


def chosen_schema(
    report: Report, schemas: Schemas, section: str, default: str | None
) -> BlockSchema | None:
    """Return the schema of the chosen adapter; a kind that is none is reported and replaced."""
    known = schemas.agents if section == "agent" else schemas.trackers
    block, path = report.document.at((section,)), (section, "kind")
    if block is not None and not isinstance(block.value, Mapping):
        return None
    node = report.document.at(path) or Node(value=default, origin=report.nearest(path).where)
    if isinstance(node.value, str) and node.value in known:
        return known[node.value]
    broken = schemas.broken.get((section, str(node.value)))
    message = _about_kind(node.value, known) if broken is None else f"cannot be used: {broken}"
    report.error(node, path, message)
    report.replace(path, Node(value="unknown", origin=node.place))
    return None


def _about_kind(value: object, known: Mapping[str, BlockSchema]) -> str:
    if value is None:
        return f"is required; known: {', '.join(sorted(known))}"
    word = value if isinstance(value, str) else ""
    of_others = [
        f"set kind: {kind} and command: {command}"
        for kind, schema in known.items()
        if (command := schema.commands.get(word))
    ]
    hint = of_others[0] if of_others else nearest(word, known)
    return f"needs a known kind, not {describe(value)}; {hint}"


def adapter_blocks(
    report: Report,
    schemas: Mapping[str, BlockSchema],
    chosen: BlockSchema | None,
    context: DecodeContext,
) -> Iterator[tuple[str, BaseModel]]:
    """Yield the block of each adapter that has one, by its name."""
    for schema in schemas.values():
        path = (schema.block_name,)
        if report.document.at(path) is None and schema is not chosen:
            block = _defaults(schema.model)
        else:
            block = decode_block(path, schema.model, context, report)
        if block is not None:
            yield schema.block_name, block


def _defaults(model: type[BaseModel]) -> BaseModel | None:
    try:
        return model()
    except ValidationError:
        return None
