"""Markdown as a document that Jira Cloud takes; md-adf does the conversion."""

from __future__ import annotations

import re
from typing import Any

from md_adf import markdown_to_adf

from sortie.trackers.jira.markdown_text import clean, is_harmless_link

Node = dict[str, Any]

_FENCE = re.compile(r"^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)*(`{3,}|~{3,})")
_MAY_BE_EMPTY = frozenset({"paragraph", "heading", "codeBlock", "taskItem"})


def from_markdown(markdown: str) -> Node:
    """Return Markdown as a document, in which lines end where they are written to end."""
    text = _with_hard_breaks(clean(markdown))
    # Its own check against the whole schema takes seconds for a long comment.
    document = markdown_to_adf(text, {"validate_adf": False}).value
    nodes = (_sound(dict(child)) for child in document["content"])
    content = [node for node in nodes if node is not None]
    empty: Node = {"type": "paragraph", "content": []}
    return {"version": 1, "type": "doc", "content": content or [empty]}


def _with_hard_breaks(markdown: str) -> str:
    lines, fence = [], ""
    for line in markdown.split("\n"):
        found = _FENCE.match(line)
        if found is not None and not fence:
            fence = found[1]
        elif fence and line.strip(" >\t").startswith(fence):
            fence = ""
        elif not fence and line.strip() and not line.startswith(("    ", "\t")):
            line = line.rstrip() + "  "
        lines.append(line)
    return "\n".join(lines)


def _sound(node: Node) -> Node | None:
    """Return a node without what Jira refuses or nobody should click on; None: nothing is left."""
    if node["type"] == "text":
        if not node["text"]:
            return None
        marks = [mark for mark in node.get("marks", ()) if _is_sound(mark)]
        unmarked = {"type": "text", "text": node["text"]}
        return {**unmarked, "marks": marks} if marks else unmarked
    if "content" not in node:
        return node
    content = [kept for child in node["content"] if (kept := _sound(child)) is not None]
    if content or node["type"] in _MAY_BE_EMPTY:
        return {**node, "content": content}
    return None


def _is_sound(mark: Node) -> bool:
    return mark["type"] != "link" or is_harmless_link(mark["attrs"]["href"])
