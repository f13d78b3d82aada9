"""Recognize the template syntax of Go and show how Jinja writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENING = re.compile(r"{{|{#|{%[-+]?\s*raw\s*-?%}")
_END_OF_RAW = re.compile(r"{%[-+]?\s*endraw\b")
_FIELD = re.compile(r"(?<![\w)\]\"'])\.([A-Za-z_])")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class GoAction:
    """A Go action at ``index`` of the template, and its like in Jinja."""

    index: int
    written: str
    jinja: str


def go_actions(template: str) -> Iterator[GoAction]:
    """Yield what is written as Go writes it."""
    end = 0
    while found := _OPENING.search(template, end):
        end = _end(template, found)
        if end < 0:
            return  # it never closes, which Jinja will say better
        written = template[found.start() : end]
        if found[0] == "{{" and (jinja := _jinja(written[2:-2].strip("-").strip())):
            yield GoAction(index=found.start(), written=" ".join(written.split()), jinja=jinja)


def _end(template: str, opening: re.Match[str]) -> int:
    """Return where what is opened has ended, -1 where it does not end."""
    if opening[0] in ("{{", "{#"):
        closing = template.find("}}" if opening[0] == "{{" else "#}", opening.end())
        return closing + 2 if closing >= 0 else -1
    found = _END_OF_RAW.search(template, opening.end())
    return found.end() if found else -1


def _expression(go: str) -> str:
    return _VARIABLE.sub(r"\1", _FIELD.sub(r"\1", " ".join(go.split())))


def _jinja(action: str) -> str | None:
    word, _, rest = action.partition(" ")
    rest = rest.strip()
    match word:
        case "end":
            return None if rest else "{% endif %} or {% endfor %}"
        case "else":
            if rest.startswith("if "):
                return f"{{% elif {_expression(rest[3:])} %}}"
            return None if rest else "{% else %}"
        case "if" | "with" if rest:
            return f"{{% if {_expression(rest)} %}}"
        case "range" if rest and not rest.startswith("("):
            names, _, items = rest.rpartition(":=")
            name = _expression(names).rpartition(",")[2].strip() or "item"
            return f"{{% for {name} in {_expression(items)} %}}"
    if action.startswith((".", "$")):
        return f"{{{{ {_expression(action)} }}}}"
    return None
