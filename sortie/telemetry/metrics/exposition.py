"""All metrics as one page, in the format that a client asks for."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposition:
    """All metrics as one page, and the media type of its format."""

    body: bytes
    content_type: str


def expose(registry: CollectorRegistry, accept: str) -> Exposition:
    """Render a registry in the format that an Accept header asks for; plain text otherwise."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version in the header that is no version
        encode, content_type = choose_encoder("")
    return Exposition(body=encode(registry), content_type=content_type)
