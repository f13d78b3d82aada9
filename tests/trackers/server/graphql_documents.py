"""Documents of GraphQL, held to a schema once: programs send the same few again and again."""

from __future__ import annotations

from functools import lru_cache

from graphql import DocumentNode, GraphQLError, GraphQLSchema, parse, validate

from tests.trackers.server.contract import Violation


@lru_cache(maxsize=1000)
def document_of(text: str, schema: GraphQLSchema) -> DocumentNode:
    """Return what a text says. Raises Violation where it is not as the schema has it."""
    try:
        document = parse(text)
    except GraphQLError as exc:
        raise Violation(f"no GraphQL: {exc}") from exc
    if errors := validate(schema, document):
        raise Violation("; ".join(map(str, errors)))
    return document
