"""What is wrong with ``self_review`` beside the blocks of agents; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from sortie.config.messages import describe, explain, nearest
from sortie.config.report import Finding
from sortie.config.schemas import AgentSchema, Schemas
from sortie.config.self_review import SelfReviewSettings
from sortie.documents import Path

_BLOCK: Path = ("self_review",)
_AGENT: Path = ("self_review", "agent")
_MODEL: Path = ("self_review", "model")
_KIND: Path = ("agent", "kind")
_URL: Path = ("repository", "url")


def review_findings(
    parts: Mapping[str, Any], schemas: Schemas, blocks: Mapping[str, BaseModel]
) -> Iterator[Finding]:
    """Yield what is wrong with ``self_review``; ``blocks`` are those of adapters, as decoded."""
    review: SelfReviewSettings | None = parts["self_review"]
    if review is None:
        return
    if parts["repository"].url is None:
        message = "means nothing without repository.url"
        yield Finding(path=_BLOCK, message=message, severity="warning", needs=(_URL,))
    kind = review.agent or parts["agent"].kind
    schema = schemas.agents.get(kind)
    if schema is None:
        if review.agent is not None:
            yield Finding(path=_AGENT, message=_about_kind(kind, schemas))
        return
    block = blocks.get(schema.block_name)
    if block is None:
        if review.agent is not None:
            message = f"is {kind}, whose block {schema.block_name} has required keys: write it"
            yield Finding(path=_AGENT, message=message, needs=((schema.block_name,),))
        return
    if schema.read_only is None:
        message = (
            f"a {kind} agent cannot be kept to reading: what it writes is thrown away with its"
            " clone, and it can do whatever its user can"
        )
        yield Finding(path=_AGENT, message=message, severity="warning", needs=(_KIND,))
    yield from _about_model(review, kind, schema, block)


def _about_kind(kind: str, schemas: Schemas) -> str:
    broken = schemas.broken.get(("agent", kind))
    if broken is not None:
        return f"cannot be used: {broken}"
    return f"needs a known kind of agent, not {describe(kind)}; {nearest(kind, schemas.agents)}"


def _about_model(
    review: SelfReviewSettings, kind: str, schema: AgentSchema, block: BaseModel
) -> Iterator[Finding]:
    if review.model is None:
        return
    if "model" not in schema.model.model_fields:
        message = f"means nothing to a {kind} agent, whose block has no model; leave it out"
        yield Finding(path=_MODEL, message=message, needs=(_KIND, _AGENT))
        return
    written = block.model_dump(by_alias=True, exclude_unset=True) | {"model": review.model}
    try:
        schema.model.model_validate(written)
    except ValidationError as exc:
        for error in exc.errors(include_url=False):
            if error["loc"][:1] == ("model",):
                message = explain(error, review.model, shown=True)
                yield Finding(path=_MODEL, message=message, needs=(_KIND, _AGENT))
