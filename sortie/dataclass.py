"""``dataclass`` for modules that are loaded before a command answers or a daemon polls.

The library's own compiles six functions for each frozen class, on Python 3.11 in a quarter of a
millisecond, and a daemon has hundreds of such classes. Here ``__init__`` is compiled alone; the
others are written once and look at the fields. What they do is the same, and tests compare them.
Classes with other options than ``frozen=True, slots=True`` and ``kw_only`` are the library's.

A class made here and one of the library's do not inherit from each other where one is frozen: that
is a TypeError as soon as the module is loaded.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a class whose instances cannot be changed, as the library does."""
        kw_only = options.pop("kw_only", False)
        if options != {"frozen": True, "slots": True}:
            return dataclasses.dataclass(cls, kw_only=kw_only, **options)
        return partial(_made, kw_only)


def _made(kw_only: bool, bare: type) -> type:
    if bare.__doc__ is None:
        bare.__doc__ = bare.__name__  # the library would inspect the signature for it
    own = bare.__dict__
    has_hash = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)
    cls: type = make(bare)
    fields = dataclasses.fields(cls)
    methods = _methods(cls, fields)
    if has_hash:
        del methods["__hash__"]
    for name, method in methods.items():
        if name == "__hash__" or name not in own:
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            setattr(cls, name, method)
    return cls


def _methods(
    cls: type, fields: tuple[dataclasses.Field[Any], ...]
) -> dict[str, Callable[..., Any]]:
    names = frozenset(field.name for field in fields)
    state = tuple(field.name for field in fields)
    shown = tuple(field.name for field in fields if field.repr)
    compared = _values_of([field.name for field in fields if field.compare])
    hashed = _values_of([f.name for f in fields if (f.compare if f.hash is None else f.hash)])

    @recursive_repr()
    def __repr__(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return compared(self) == compared(other)
        return NotImplemented

    def __hash__(self: Any) -> int:
        return hash(hashed(self))

    def __setattr__(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        object.__setattr__(self, name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        object.__delattr__(self, name)

    def __getstate__(self: Any) -> list[object]:
        return [getattr(self, name) for name in state]

    def __setstate__(self: Any, values: list[object]) -> None:
        for name, value in zip(state, values, strict=True):
            object.__setattr__(self, name, value)

    made = (__repr__, __eq__, __hash__, __setattr__, __delattr__, __getstate__, __setstate__)
    return {"__init__": _init(cls, fields), **{each.__name__: each for each in made}}


def _values_of(names: list[str]) -> Callable[[Any], tuple[object, ...]]:
    """Return what gives the values of some fields as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return lambda instance: (get(instance),)


def _init(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """Compile what sets the slots of an instance."""
    given: dict[str, Any] = {"_missing": MISSING}
    words, lines = ["self"], []
    for field in sorted(fields, key=lambda field: bool(field.kw_only)):
        if field.kw_only and "*" not in words:
            words.append("*")
        name = field.name
        given[f"_set_{name}"] = getattr(cls, name).__set__
        value = name
        if field.default is not MISSING:
            given[f"_default_{name}"] = field.default
            default = f"_default_{name}"
        elif field.default_factory is not MISSING:
            given[f"_make_{name}"] = field.default_factory
            default = "_missing"
            value = f"_make_{name}() if {name} is _missing else {name}"
        else:
            default = None
        if field.init:
            words.append(name if default is None else f"{name}={default}")
            lines.append(f"    _set_{name}(self, {value})")
        elif default is not None:
            value = f"_make_{name}()" if default == "_missing" else default
            lines.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    if words[-1] == "*":
        words.pop()
    body = "\n".join(lines or ["    pass"])
    inner = f"  def __init__({', '.join(words)}):\n{body}"
    text = f"def make({', '.join(given)}):\n{inner}\n  return __init__"
    made: dict[str, Any] = {}
    exec(text, sys.modules[cls.__module__].__dict__, made)  # noqa: S102  (our own words)
    init: Callable[..., None] = made["make"](**given)
    init.__annotations__ = {f.name: f.type for f in fields if f.init} | {"return": None}
    return init
