"""What packages say that they hold."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import sortie

PACKAGES = [
    found.name
    for found in pkgutil.walk_packages(sortie.__path__, "sortie.")
    if found.ispkg and hasattr(importlib.import_module(found.name), "__all__")
]


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_what_it_names(name: str) -> None:
    """Every name in ``__all__`` is there, once."""
    package = importlib.import_module(name)

    assert [each for each in package.__all__ if not hasattr(package, each)] == []
    assert len(set(package.__all__)) == len(package.__all__)
