"""Convert templates of Liquid, as Symphony has them, to Jinja; pure.

Most of Liquid is Jinja as it stands. What has no counterpart becomes a comment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sortie.workflow.bounded_filters import PROMPT_FILTERS
from sortie.workflow.go_expressions import KINDS
from sortie.workflow.go_functions import GoKind

_TAG = re.compile(
    r"{%(?P<ls>-?)\s*(?P<tag>raw|comment)\s*-?%}(?P<body>.*?){%-?\s*end(?P=tag)\s*(?P<re>-?)%}"
    r"|{%(?P<l>-?)\s*(?P<word>\w*)\s*(?P<rest>.*?)\s*(?P<r>-?)%}"
    r"|{{(?P<lo>-?)\s*(?P<shown>.*?)\s*(?P<ro>-?)}}"
    r"|(?P<brace>{(?=\#))",
    re.DOTALL,
)
_STRING = r"'[^']*'|\"[^\"]*\""
_SPLIT = {mark: re.compile(rf"({_STRING})|{mark}") for mark in (r"\|", ",", ":", r"\b(?:and|or)\b")}
_OPERATOR = re.compile(r"(.+?)\s*(==|!=|<>|<=|>=|<|>|\bcontains\b)\s*(.+)", re.DOTALL)
_LOOP = re.compile(r"(\w+)\s+in\s+(\S+)")
_SET = re.compile(r"(\w+)\s*=\s*(.+)", re.DOTALL)
_WORDS = {"nil": "none", "null": "none", "empty": '""', "blank": '""'}
_FILTERS = {
    "size": "length",
    "downcase": "lower",
    "upcase": "upper",
    "strip": "trim",
    "json": "tojson",
    "escape": "forceescape",
    "strip_html": "striptags",
    "url_encode": "urlencode",
    "uniq": "unique | list",
    "reverse": "reverse | list",
}
_SAME = ("abs", "capitalize", "first", "join", "last", "replace", "round", "sort")
_OPERATORS = {"append": "~", "plus": "+", "minus": "-", "times": "*", "modulo": "%"}


class _NotLiquid(Exception):
    """It has no counterpart; the text says what."""


def from_liquid(template: str) -> tuple[str, Sequence[tuple[int, str]]]:
    """Return a template as Jinja, and what of it is lost, each with its index."""
    made, at, faults = "", 0, list[tuple[int, str]]()
    blocks = _Blocks()
    for found in _TAG.finditer(template):
        made += template[at : found.start()]
        at = found.end()
        try:
            made += blocks.converted(found)
        except _NotLiquid as error:
            faults.append((found.start(), str(error)))
            made += f"{{# not imported: {found[0].strip('{}%-').strip().replace('#}', '# }')} #}}"
            made += blocks.opened_in_vain(found["word"])
    made += template[at:]
    for _ in range(len(blocks.open)):
        faults.append((len(template), "a block lacks its end"))
        made += f"{{% {blocks.open.pop()} %}}"
    return made, faults


class _Blocks:
    """The blocks that are open: how Jinja ends each, and what ``case`` asks for."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self._cases: list[str] = []

    def converted(self, found: re.Match[str]) -> str:
        """Return what a tag is in Jinja. Raises _NotLiquid."""
        if found["brace"]:
            return '{{ "{" }}'
        if found["tag"] == "comment":
            body = " ".join(found["body"].replace("#}", "# }").split())
            return f"{{#{found['ls']} {body} {found['re']}#}}"
        if found["tag"]:
            return found[0]
        if found["shown"] is not None:
            return f"{{{{{found['lo']} {_shown(found['shown'])} {found['ro']}}}}}"
        text = self._statement(found["word"], found["rest"])
        return f"{{%{found['l']} {text} {found['r']}%}}" if text else ""

    def opened_in_vain(self, word: str | None) -> str:
        """Open a block that is never rendered, where one begins that has no counterpart."""
        if word in ("for", "tablerow"):
            self.open.append("endfor")
            return "{% for item in [] %}"
        if word in ("if", "unless", "case", "ifchanged"):
            self.open.append("endif")
            return "{% if false %}"
        return "{% elif false %}" if word in ("elsif", "when") and self.open else ""

    def _statement(self, word: str, rest: str) -> str:
        match word:
            case "if" | "unless":
                condition = _condition(rest)
                self.open.append("endif")
                return f"if {condition}" if word == "if" else f"if not ({condition})"
            case "elsif" if self.open:
                return f"elif {_condition(rest)}"
            case "else" if self.open:
                return "else"
            case "case":
                subject = _value(rest)
                self.open.append("endif")
                self._cases.append(subject)
                return "if false"
            case "when" if self._cases:
                values = ", ".join(_value(each) for each in re.split(r",|\bor\b", rest))
                return f"elif {self._cases[-1]} in [{values}]"
            case "for" if found := _LOOP.fullmatch(rest):
                items = _value(found[2])
                self.open.append("endfor")
                return f"for {found[1]} in {items}"
            case "assign" if found := _SET.fullmatch(rest):
                if "endfor" in self.open:
                    raise _NotLiquid("a value that is set in a loop is gone behind it in Jinja")
                return f"set {found[1]} = {_value(found[2])}"
            case "capture" if re.fullmatch(r"\w+", rest):
                self.open.append("endset")
                return f"set {rest}"
            case "endcase" if self._cases:
                self._cases.pop()
        if word.startswith("end") and self.open:
            return self.open.pop()
        raise _NotLiquid(f"{word or 'an empty tag'} has no counterpart, or not in this form")


def _split(text: str, mark: str) -> list[str]:
    """Split a text at a mark that stands in no string."""
    parts, at = [], 0
    for found in _SPLIT[mark].finditer(text):
        if not found[1]:
            parts.append(text[at : found.start()].strip())
            at = found.end()
    return [*parts, text[at:].strip()]


def _shown(text: str) -> str:
    value = _value(text)
    is_maybe = KINDS.get(text) is GoKind.MAYBE_TEXT or text == "issue.priority"
    return f'{value} or ""' if is_maybe else value


def _value(text: str) -> str:
    """Return a value with its filters."""
    first, *filters = _split(text, r"\|")
    made = _operand(first)
    for each in filters:
        name, *given = _split(each, ":")
        arguments = [_operand(part) for part in _split(", ".join(given), ",")] if given else []
        made = _filtered(made, name, arguments)
    return made


def _filtered(made: str, name: str, arguments: Sequence[str]) -> str:
    call = f"({', '.join(arguments)})" if arguments else ""
    if name == "default" and len(arguments) == 1:
        return f"{made} | default({arguments[0]}, true)"
    if name == "join" and not arguments:
        return f'{made} | join(" ")'
    if name in _OPERATORS and len(arguments) == 1:
        return f"({made} {_OPERATORS[name]} {arguments[0]})"
    if name == "prepend" and len(arguments) == 1:
        return f"({arguments[0]} ~ {made})"
    if name == "split" and len(arguments) == 1:
        return f"({made}).split({arguments[0]})"
    if name in _FILTERS or (name in _SAME and name in PROMPT_FILTERS):
        return f"{made} | {_FILTERS.get(name, name)}{call}"
    raise _NotLiquid(f"the filter {name} has no counterpart")


def _operand(text: str) -> str:
    if re.fullmatch(_STRING, text):
        return '"' + text[1:-1].replace("\\", "\\\\").replace('"', '\\"') + '"'
    if text in _WORDS or re.fullmatch(r"-?\d+(\.\d+)?", text):
        return _WORDS.get(text, text)
    if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+|\[(\d+|'\w+'|\"\w+\")\])*", text):
        raise _NotLiquid("is not understood")
    text = re.sub(r"^forloop\.r", "loop.rev", re.sub(r"^forloop\.(?!r)", "loop.", text))
    for end, made in ((".size", " | length"), (".first", "[0]"), (".last", "[-1]")):
        if text.endswith(end) and not text.startswith("loop."):
            return text.removesuffix(end) + made
    return text


def _condition(text: str) -> str:
    words = {found[0] for found in _SPLIT[r"\b(?:and|or)\b"].finditer(text) if not found[1]}
    if len(words) > 1:
        raise _NotLiquid("and beside or, which Liquid reads from the right")
    parts = [_comparison(part) for part in _split(text, r"\b(?:and|or)\b")]
    return f" {words.pop()} ".join(parts) if words else parts[0]


def _comparison(text: str) -> str:
    found = _OPERATOR.fullmatch(text)
    if found is None:
        return _value(text)
    left, operator, right = _value(found[1]), found[2], found[3].strip()
    if operator == "contains":
        return f"{_value(right)} in {left}"
    if right in ("empty", "blank") and operator in ("==", "!=", "<>"):
        return f"not {left}" if operator == "==" else left
    return f"{left} {'!=' if operator == '<>' else operator} {_value(right)}"
