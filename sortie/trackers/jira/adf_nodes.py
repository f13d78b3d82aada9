"""What can be asked of a node of a document (ADF), whatever stands in its place."""

from __future__ import annotations

from collections.abc import Iterator

from sortie.trackers.jira.markdown_text import clean


def kind_of(node: object) -> str:
    """Return the type of a node, "" for what is none."""
    kind = node.get("type") if isinstance(node, dict) else None
    return kind if isinstance(kind, str) else ""


def children_of(node: object) -> list[object]:
    """Return what stands in a node, or the items of a list."""
    content = node.get("content") if isinstance(node, dict) else node
    return content if isinstance(content, list) else []


def attribute_of(node: object, *names: str) -> str:
    """Return the first of these attributes that is a text with something in it, cleaned."""
    attributes = node.get("attrs") if isinstance(node, dict) else None
    if not isinstance(attributes, dict):
        return ""
    return next((text for name in names if (text := text_of(attributes.get(name)))), "")


def text_of(value: object) -> str:
    """Return a value as a cleaned text, "" for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return clean(value).strip() if isinstance(value, str) else ""


INLINE = frozenset(
    {"text", "hardBreak", "mention", "emoji", "date", "status", "placeholder"}
    | {"inlineCard", "mediaInline", "inlineExtension"}
)


def is_inline(node: object) -> bool:
    """Tell whether a node stands in a line."""
    return kind_of(node) in INLINE


def name_of_unknown(node: object) -> str:
    """Return what can be said of an unknown node."""
    said = attribute_of(node, "text", "title", "alt", "url", "extensionKey", "shortName", "id")
    return f"({text_of(kind_of(node))}{': ' if said else ''}{said})"


def raw_text_of(node: object) -> str:
    """Return the text of a node with all its blanks, else the words in it."""
    text = node.get("text") if isinstance(node, dict) else None
    return clean(text) if isinstance(text, str) else " ".join(words_in(node))


def words_in(node: object) -> Iterator[str]:
    """Yield the texts in a node, however deep it is."""
    waiting = [node]
    while waiting:
        it = waiting.pop()
        if isinstance(it, dict) and (text := text_of(it.get("text")) or attribute_of(it, "text")):
            yield text
        waiting += reversed(children_of(it))
