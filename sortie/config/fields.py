"""What the models of the settings tell about their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from sortie.config.references import Lookup


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a model's fields by their keys in WORKFLOW.md."""
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _as_model(annotation: Any) -> type[BaseModel] | None:
    """Return the model that an annotation names, also where it may be None."""
    if isinstance(annotation, UnionType):
        parts = [part for part in get_args(annotation) if part is not NoneType]
        annotation = parts[0] if len(parts) == 1 else None
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return None


def sections_of(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the models in a model by their keys in WORKFLOW.md."""
    inner = {key: _as_model(info.annotation) for key, info in fields_of(model).items()}
    return {key: section for key, section in inner.items() if section is not None}


def leaves_of(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Yield every key of a model and of the models in it, with its path."""
    for key, info in fields_of(model).items():
        if inner := _as_model(info.annotation):
            yield from leaves_of(inner, (*path, key))
        else:
            yield (*path, key), info


def _annotations(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _annotations(part)


def parts_of(info: FieldInfo) -> tuple[Any, ...]:
    """Return all types and marks that a field's annotation is made of."""
    return (*info.metadata, *_annotations(info.annotation))


def lookup_of(info: FieldInfo) -> Lookup | None:
    """Return how references are looked up in a field, None where they are not."""
    return next((part for part in parts_of(info) if isinstance(part, Lookup)), None)


def is_secret(info: FieldInfo) -> bool:
    """Tell whether a field's value must not be shown."""
    return SecretStr in parts_of(info)


def is_list(info: FieldInfo) -> bool:
    """Tell whether a field takes a list, and not a text as well."""
    return get_origin(info.annotation) is tuple


def is_mapping(info: FieldInfo) -> bool:
    """Tell whether a field takes a mapping."""
    return get_origin(info.annotation) is Mapping
