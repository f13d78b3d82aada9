"""A line of a document (ADF) as Markdown: its texts with their marks, and what stands in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec import Struct

from sortie.trackers.jira.adf_nodes import (
    attribute_of,
    kind_of,
    name_of_unknown,
    raw_text_of,
    words_in,
)
from sortie.trackers.jira.markdown_text import code_span, escaped, is_harmless_link, link

_DELIMITERS = {"strong": "**", "em": "_", "strike": "~~"}


def picture(node: object) -> str:
    """Return a picture or a file as a link, or as its name."""
    name = escaped(attribute_of(node, "alt", "id") or "media", at_line_start=False)
    url = attribute_of(node, "url")
    return link(f"picture {name}", url) if is_harmless_link(url) else f"(picture {name})"


def card(node: object) -> str:
    """Return a card as a link to what it shows."""
    attributes = node.get("attrs") if isinstance(node, dict) else None
    data = {"attrs": attributes.get("data")} if isinstance(attributes, dict) else {}
    url = attribute_of(node, "url") or attribute_of(data, "url", "@id")
    title = attribute_of(node, "title") or attribute_of(data, "name", "title")
    if not is_harmless_link(url):
        return escaped(title or url or "(card)", at_line_start=False)
    return link(escaped(title, at_line_start=False), url) if title else f"<{link('', url)}>"


def _date(node: object) -> str:
    told = attribute_of(node, "timestamp")
    try:
        return datetime.fromtimestamp(int(told) / 1000, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return told


class _TextRun(Struct, frozen=True):
    """Neighbouring text with the same marks; ``text`` is Markdown already where ``is_done``."""

    text: str
    marks: frozenset[str] = frozenset()
    target: str = ""
    is_done: bool = False


@dataclass(slots=True)
class AdfLine:
    """Inline nodes on their way to Markdown; ``breaks`` stands for a line's end."""

    breaks: str
    in_table: bool = False
    _out: str = field(default="", init=False)
    _is_mixed: bool = field(default=False, init=False)

    def of(self, nodes: Sequence[object]) -> str:
        """Return the nodes as Markdown."""
        runs = _merged(map(self._run, nodes))
        self._is_mixed = len(runs) > 1
        for n, run in enumerate(runs):
            following = runs[n + 1].text[:1] if n + 1 < len(runs) else ""
            rendered = self._rendered(run, following)  # which adds to what is there
            self._out += rendered
        if self.breaks == "\n":
            return re.sub(r"[ \t]+(?=\n|$)", "", self._out).strip("\n")
        return self._out.strip().replace("\n", self.breaks)

    def _run(self, node: object) -> _TextRun:
        match kind_of(node):
            case "text":
                return _text_run(node)
            case "hardBreak":
                return _TextRun("\n")
            case "mention":
                return _TextRun(
                    "@" + (attribute_of(node, "text", "id") or "unknown").removeprefix("@")
                )
            case "emoji":
                return _TextRun(attribute_of(node, "text", "shortName") or ":emoji:")
            case "date":
                return _TextRun(_date(node))
            case "status" | "placeholder":
                return _TextRun(attribute_of(node, "text"))
            case "inlineCard":
                return _TextRun(card(node), is_done=True)
            case "mediaInline":
                return _TextRun(picture(node), is_done=True)
        return _TextRun(" ".join(words_in(node)) or name_of_unknown(node))

    def _rendered(self, run: _TextRun, following: str) -> str:
        if run.is_done:
            return self._in_cell(run.text)
        if "code" in run.marks:
            return self._in_cell(code_span(run.text))
        text = run.text
        core = text.strip()
        if not core or not (run.marks or run.target):
            starts_line = self._starts_line()
            return self._in_cell(escaped(text, at_line_start=starts_line, marked=self._is_mixed))
        before, _, after = text.partition(core)
        self._out += before
        content = self._in_cell(escaped(core, at_line_start=False, marked=True))
        for mark, delimiter in reversed(_DELIMITERS.items()):
            if mark in run.marks and self._fits(core, delimiter, after or following):
                content = f"{delimiter}{content}{delimiter}"
        return (link(content, run.target) if run.target else content) + after

    def _fits(self, core: str, delimiter: str, following: str) -> bool:
        """Tell whether delimiters around a text would be taken for what they are meant as."""
        previous = self._out[-1:]
        if previous == delimiter[0] or "\n" in core:
            return False
        if delimiter == "_" and (_is_word(previous) or _is_word(following)):
            return False
        begins = _is_word(core[0]) or not _is_word(previous)
        return begins and (_is_word(core[-1]) or not _is_word(following))

    def _starts_line(self) -> bool:
        return not self._out.strip(" \t") or self._out.endswith("\n")

    def _in_cell(self, text: str) -> str:
        return re.sub(r"(?<!\\)\|", r"\\|", text) if self.in_table else text


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _text_run(node: object) -> _TextRun:
    marks, target = set(), ""
    told = node.get("marks") if isinstance(node, dict) else None
    for mark in told if isinstance(told, list) else ():
        kind = kind_of(mark)
        if kind in _DELIMITERS or kind == "code":
            marks.add(kind)
        elif kind == "link" and is_harmless_link(url := attribute_of(mark, "href")):
            target = url
    return _TextRun(raw_text_of(node), frozenset(marks), target)


def _merged(runs: Iterable[_TextRun]) -> list[_TextRun]:
    merged: list[_TextRun] = []
    for run in runs:
        last = merged[-1] if merged else None
        if (
            last is not None
            and (last.marks, last.target) == (run.marks, run.target)
            and not (last.is_done or run.is_done)
        ):
            merged[-1] = _TextRun(last.text + run.text, run.marks, run.target)
        elif run.text:
            merged.append(run)
    return merged
