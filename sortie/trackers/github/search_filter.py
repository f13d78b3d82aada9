"""``tracker.query_filter`` as qualifiers of a search that stays in one repository."""

from __future__ import annotations

from collections.abc import Iterator

OURS = ("repo", "org", "user", "is", "type", "state")
"""Qualifiers that Sortie sets itself."""


def filter_fault(text: str) -> str | None:
    """Say why a filter cannot be used, None where it can."""
    if any(ord(char) < 32 for char in text):
        return "has a control character; write it on one line"
    if text.count('"') % 2:
        return "has a quote that is not closed"
    for word in words_of(text):
        bare = word.lstrip("-").casefold()
        if word in ("OR", "AND"):
            return f"has {word}, which would reach beyond the project; use qualifiers alone"
        if "(" in word or ")" in word:
            return "has a bracket outside of quotes; use qualifiers alone"
        for name in OURS:
            if bare.startswith(f"{name}:"):
                return f'has "{name}:", which is set by tracker.project and the states'
    return None


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a filter; what stands in quotes is left out of them."""
    parts = text.split('"')
    yield from " ".join(parts[::2]).split()


def query_of(repository: str, filter_text: str, *, closed: bool) -> str:
    """Return what is searched for."""
    state = "" if closed else " state:open"
    return f"repo:{repository} is:issue{state} {filter_text.strip()}"
