"""Linear's published schema: what documents, variables and answers are held to."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    SelectionSetNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    build_schema,
    get_named_type,
    visit,
)
from graphql.execution.values import get_variable_values

from tests.trackers.server.contract import Violation
from tests.trackers.server.exchange import Received, Reply
from tests.trackers.server.graphql_documents import document_of

_PATH = Path(__file__).with_name("linear.schema.graphql.gz")
_DEFAULT_PAGE = 50


@cache
def schema() -> GraphQLSchema:
    """Return the schema; times in answers have to be times with a zone."""
    found = build_schema(gzip.decompress(_PATH.read_bytes()).decode(), assume_valid=True)
    found.type_map["DateTime"].serialize = _time  # type: ignore[attr-defined]
    return found


def _time(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("!"):
        return value[1:]  # a test has spoiled it
    if not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is None:
        raise GraphQLError(f"DateTime cannot be {value!r}")
    return value


@cache
def parsed(text: str) -> DocumentNode:
    """Return a document that is valid. Raises Violation for one that is not."""
    document = document_of(text, schema())
    if errors := _deprecated(document):
        raise Violation("; ".join(errors))
    return document


def _deprecated(document: DocumentNode) -> list[str]:
    """Return the fields that may vanish, since the schema has no versions."""
    info, found = TypeInfo(schema()), []

    class Finder(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            definition = info.get_field_def()
            if definition is not None and definition.deprecation_reason:
                found.append(f"{node.name.value} is deprecated: {definition.deprecation_reason}")

    visit(document, TypeInfoVisitor(info, Finder()))
    return found


def operation_of(document: DocumentNode) -> OperationDefinitionNode:
    """Return the one operation of a document."""
    (found,) = (d for d in document.definitions if isinstance(d, OperationDefinitionNode))
    return found


class GraphQLContract:
    """Exchanges held to the schema."""

    def check_request(self, request: Received) -> None:
        """Raise Violation where a document or its variables are not as described."""
        if request.method != "POST" or request.headers.get("content-type") != "application/json":
            raise Violation(f"{request}: no POST of JSON")
        body = request.json
        if set(body) - {"query", "variables", "operationName"}:
            raise Violation(f"{request}: {sorted(body)}")
        operation = operation_of(parsed(body["query"]))
        given = get_variable_values(
            schema(), operation.variable_definitions or (), body.get("variables") or {}
        )
        if isinstance(given, list):
            raise Violation("; ".join(map(str, given)))

    def check_answer(self, request: Received, reply: Reply) -> None:
        """Raise Violation where an answer has not the shape of GraphQL's."""
        if not isinstance(reply.body, Mapping) or not {"data", "errors"} & set(reply.body):
            raise Violation(f"{request} answered no GraphQL")
        errors = reply.body.get("errors", [])
        if any(not isinstance(error.get("message"), str) for error in errors):
            raise Violation(f"{request} answered an error without a message")


def complexity(document: DocumentNode, variables: Mapping[str, Any]) -> float:
    """Return the points of a document as Linear's pages describe them: a tenth for a property, one
    for an object, and what is in a list as often as its page is long."""
    fragments = {
        d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)
    }
    query = schema().query_type if operation_of(document).operation.value == "query" else None
    root = query or schema().mutation_type
    return round(_points(operation_of(document).selection_set, root, fragments, variables), 1)


def _points(
    selections: SelectionSetNode, kind: Any, fragments: Mapping[str, Any], given: Mapping[str, Any]
) -> float:
    total = 0.0
    for node in selections.selections:
        if isinstance(node, FragmentSpreadNode):
            fragment = fragments[node.name.value]
            total += _points(fragment.selection_set, kind, fragments, given)
        elif not isinstance(node, FieldNode) or node.selection_set is None:
            total += 0.1
        else:
            inner = get_named_type(kind.fields[node.name.value].type)
            points = 1 + _points(node.selection_set, inner, fragments, given)
            total += points * (_page(node, given) if inner.name.endswith("Connection") else 1)
    return total


def _page(node: FieldNode, given: Mapping[str, Any]) -> int:
    for argument in node.arguments or ():
        if argument.name.value == "first":
            value: Any = argument.value
            return int(given[value.name.value] if value.kind == "variable" else value.value)
    return _DEFAULT_PAGE
