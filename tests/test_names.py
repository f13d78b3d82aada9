"""Names of classes: each stands for one thing in the whole program."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1] / "sortie"


def test_every_class_name_exists_once() -> None:
    """Who searches for a class by its name finds one."""
    names = Counter(
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )

    assert {name for name, count in names.items() if count > 1} == set()
