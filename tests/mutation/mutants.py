"""Mutants of a file: mutmut's operators, applied to whole files instead of through trampolines.

Rule 1: decorated functions are mutated too, since nothing is copied beside its original.
Rule 2: a call of ``assert_never`` is no place for a mistake: it is for the type checker, and is
never reached.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One small change of a file; ``number`` counts those of the file, ``code`` is all of it."""

    file: str
    number: int
    code: str
    diff: tuple[str, ...]

    @property
    def was(self) -> str:
        """The lines that the change takes away, without their indentation."""
        return "\n".join(line[1:].strip() for line in self.diff if line.startswith("-"))

    @property
    def becomes(self) -> str:
        """The lines that the change puts in, without their indentation."""
        return "\n".join(line[1:].strip() for line in self.diff if line.startswith("+"))

    def __str__(self) -> str:
        return f"{self.file} #{self.number}\n" + "\n".join(f"    {line}" for line in self.diff)


class _Visitor(MutationVisitor):  # type: ignore[misc]
    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return False
        if isinstance(node, cst.Call) and m.matches(node.func, m.Name("assert_never")):
            return True
        return bool(super()._skip_node_and_children(node))


def mutants_of(root: Path, files: Sequence[str], count: int, draw: Random) -> Iterator[Mutant]:
    """Yield ``count`` mutants of files below ``root``, or all where there are fewer, in an order
    that ``draw`` decides."""
    places = []
    modules = {}
    for file in files:
        text = (root / file).read_text()
        wrapper = MetadataWrapper(cst.parse_module(text))
        visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()), None)
        modules[file] = (text, wrapper.visit(visitor))
        places += [(file, number, change) for number, change in enumerate(visitor.mutations)]
    draw.shuffle(places)
    seen: set[tuple[str, str]] = set()
    for file, number, change in places:
        if len(seen) == count:
            return
        text, module = modules[file]
        code = module.deep_replace(change.original_node, change.mutated_node).code
        if (file, code) in seen or code == text or not _compiles(code):
            continue
        seen.add((file, code))
        yield Mutant(file=file, number=number, code=code, diff=_diff(text, code))


def _compiles(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _diff(before: str, after: str) -> tuple[str, ...]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))
