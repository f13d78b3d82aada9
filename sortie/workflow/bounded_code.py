"""The code that Jinja makes of a prompt: it looks at the clock, and charges for values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame


class BoundedCode(CodeGenerator):
    """Begins every block of a template with a look at the clock, and charges the budget for every
    value that is made without a call."""

    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        """Write a block."""
        self.writeline("environment.budget.check_time()")
        super().blockvisit(nodes, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        """Write what ``~`` stands for."""
        self.write("environment.concatenated(context, (")
        for operand in node.nodes:
            self.visit(operand, frame)
            self.write(", ")
        self.write("))")

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        """Write an item, or a part, which is a copy."""
        self._charged(super().visit_Getitem, node, frame, isinstance(node.arg, nodes.Slice))

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        """Write a list."""
        self._charged(super().visit_List, node, frame, True)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        """Write a dict."""
        self._charged(super().visit_Dict, node, frame, True)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        """Write a tuple, or the names that one is assigned to."""
        self._charged(super().visit_Tuple, node, frame, node.ctx == "load")

    def _charged(
        self, visit: Callable[[Any, Frame], None], node: nodes.Node, frame: Frame, makes: bool
    ) -> None:
        if makes:
            self.write("environment.budget.charge(")
        visit(node, frame)
        if makes:
            self.write(")")
