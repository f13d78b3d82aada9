"""What packages say that they hold."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import sortie

PACKAGES = [
    found.name
    for found in pkgutil.walk_packages(sortie.__path__, "sortie.")
    if found.ispkg and hasattr(importlib.import_module(found.name), "__all__")
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_what_it_names(name: str) -> None:
    """Every name in ``__all__`` is there, once, and is no module."""
    package = importlib.import_module(name)

    held = {each: getattr(package, each, None) for each in package.__all__}
    assert [each for each, it in held.items() if it is None or isinstance(it, ModuleType)] == []
    assert len(set(package.__all__)) == len(package.__all__)
