"""The adapters of a port, found by their kinds: folders of the port's own package, and what
installed packages announce as entry points.

Rule 1: an adapter that cannot be used hinders no other; what is wrong with it is kept until
its kind is asked for. Rule 2: no package can replace an adapter that is built in.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pkgutil import iter_modules
from typing import Generic, Protocol, TypeVar

from sortie.model import SortieError
from sortie.model.texts import start_of

_MESSAGE_LIMIT = 300


class BrokenAdapter(SortieError):
    """An adapter is there and cannot be used; the text names the package that it comes from."""


class Adapter(Protocol):
    """What every port's adapter has: the word that ``kind`` is set to."""

    @property
    def kind(self) -> str: ...


AdapterT = TypeVar("AdapterT", bound=Adapter)


class Adapters(Generic[AdapterT]):
    """The adapters of the port whose package is ``port``, which is also its entry point group.

    A folder of the package is named as its kind, with ``_`` for ``-``, and holds ``ADAPTER``;
    folders in ``shared`` are no adapters but what several have in common. An entry point is named
    as its kind and points to the adapter.
    """

    def __init__(
        self, port: str, adapter_class: type[AdapterT], *, shared: frozenset[str] = frozenset()
    ) -> None:
        self._port = port
        self._class = adapter_class
        self._shared = shared

    @cached_property
    def found(self) -> Mapping[str, AdapterT | BrokenAdapter]:
        """Every kind there is and its adapter, those that are built in first."""
        found = {kind: self._built_in(kind) for kind in self.built_in}
        points = sorted(_announced(tuple(sys.path))(group=self._port), key=_source)
        for kind in sorted({point.name for point in points}):
            first, *others = (point for point in points if point.name == kind)
            sources = " and ".join(map(_source, (first, *others)))
            if kind in self.built_in:
                found[kind] = BrokenAdapter(
                    f"it is built in, and {sources} has it too; remove that"
                )
            elif others:
                found[kind] = BrokenAdapter(f"both {sources} have it; remove one of them")
            else:
                found[kind] = self._loaded(kind, first.load, sources)
        return found

    @cached_property
    def built_in(self) -> tuple[str, ...]:
        """The kinds that come with the program, sorted."""
        folders = (m.name for m in iter_modules(import_module(self._port).__path__) if m.ispkg)
        return tuple(sorted(n.replace("_", "-") for n in folders if n not in self._shared))

    def kinds(self) -> tuple[str, ...]:
        """Return the kinds that can be used, sorted."""
        usable = (kind for kind, it in self.found.items() if not isinstance(it, BrokenAdapter))
        return tuple(sorted(usable))

    def load(self, kind: str) -> AdapterT:
        """Return the adapter of a kind. Raises LookupError for an unknown one, BrokenAdapter."""
        adapter = self.found.get(kind)
        if adapter is None:
            raise LookupError(f"no adapter of kind {kind!r}; known: {', '.join(self.kinds())}")
        if isinstance(adapter, BrokenAdapter):
            raise adapter.with_traceback(None)
        return adapter

    def _built_in(self, kind: str) -> AdapterT | BrokenAdapter:
        folder = f"{self._port}.{kind.replace('-', '_')}"
        return self._loaded(kind, lambda: import_module(folder).ADAPTER, folder)

    def _loaded(
        self, kind: str, load: Callable[[], object], source: str
    ) -> AdapterT | BrokenAdapter:
        try:
            adapter = load()
        except Exception as exc:  # the edge: a package that cannot be imported is its own trouble
            told = start_of(" ".join(f"{type(exc).__name__}: {exc}".split()), _MESSAGE_LIMIT)
            return BrokenAdapter(f"{source} could not be loaded ({told}); mend or remove it")
        if not isinstance(adapter, self._class):
            wanted = f"{self._class.__module__}.{self._class.__name__}"
            return BrokenAdapter(f"{source} gives {type(adapter).__name__}, not a {wanted}")
        if adapter.kind != kind:
            return BrokenAdapter(f"{source} gives an adapter whose kind is {adapter.kind!r}")
        return adapter


@lru_cache(maxsize=1)
def _announced(_paths: tuple[str, ...]) -> Callable[..., EntryPoints]:
    """Return what gives the announcements of all packages below these paths for one group.

    A file is read for each package, once for all groups.
    """
    return entry_points().select


def _source(point: EntryPoint) -> str:
    package = f"{point.dist.name} {point.dist.version}" if point.dist else "an installed package"
    return f"{package} ({point.value})"
