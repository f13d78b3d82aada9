"""Recognize the template syntax of Go, show how Jinja writes it, and convert whole templates."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from sortie.workflow.go_blocks import GoBlocks

_OPENING = re.compile(r"{{|{#|{%[-+]?\s*raw\s*-?%}")
_GO_OPENING = re.compile(r"{{")
_END_OF_RAW = re.compile(r"{%[-+]?\s*endraw\b")
_ACTION = re.compile(
    r"""{{(?P<left>-(?=\s))?\s*
    (?P<content>/\*.*?\*/|(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`|[^"'`])*?)
    \s*(?P<right>(?<=\s)-)?}}""",
    re.DOTALL | re.VERBOSE,
)
_JINJA_ONLY = re.compile(r"{(?=[%#])")
_SHOWN = 120
_REACTION = """{% if reaction.kind and not run.is_continuation %}

{{ reaction.text }}{% endif %}"""


class GoAction(Struct, frozen=True, kw_only=True):
    """A Go action from ``index`` to ``end`` of the template, and its like in Jinja.

    ``fault`` says what of it has no counterpart.
    """

    index: int
    end: int
    written: str
    jinja: str
    fault: str = ""


def go_actions(template: str, *, is_go_alone: bool = False) -> Iterator[GoAction]:
    """Yield what is written as Go writes it; ``is_go_alone``: all that is between braces is."""
    end, blocks = 0, GoBlocks(template, is_go_alone)
    opening = _GO_OPENING if is_go_alone else _OPENING
    while found := opening.search(template, end):
        index, end = found.start(), _end(template, found)
        if end < 0 and not is_go_alone:
            return  # it never closes, which Jinja will say better
        written = template[index : end if end >= 0 else len(template)]
        shown = _shown(written)
        if end < 0:
            jinja, fault = _comment(written.lstrip("{"), "", ""), "does not end"
            yield GoAction(index=index, end=len(template), written=shown, jinja=jinja, fault=fault)
            break
        if found[0] == "{{" and (translated := _translated(written, blocks, is_go_alone)):
            jinja, fault = translated
            yield GoAction(index=index, end=end, written=shown, jinja=jinja, fault=fault)
    for closing in blocks.missing() if is_go_alone else ():
        yield GoAction(
            index=len(template), end=len(template), written="", jinja=closing, fault="lacks an end"
        )


def from_go(template: str) -> tuple[str, Sequence[GoAction]]:
    """Return a template of Go's as one of Jinja, and the actions that have no counterpart."""
    made, at = "", 0
    actions = list(go_actions(template, is_go_alone=True))
    for action in actions:
        made += _JINJA_ONLY.sub('{{ "{" }}', template[at : action.index]) + action.jinja
        at = action.end
    made += _JINJA_ONLY.sub('{{ "{" }}', template[at:])
    if any("reaction.kinds" in action.jinja for action in actions):
        made += _REACTION
    return made, [action for action in actions if action.fault]


def _shown(written: str) -> str:
    """Return an action, or a comment, on one line of a message."""
    line = " ".join(written.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _comment(text: str, left: str, right: str) -> str:
    return f"{{#{left} {text.replace('#}', '# }')} {right}#}}"


def _end(template: str, opening: re.Match[str]) -> int:
    """Return where what is opened has ended, -1 where it does not end."""
    if opening[0] not in ("{{", "{#"):
        found = _END_OF_RAW.search(template, opening.end())
        return found.end() if found else -1
    action = _ACTION.match(template, opening.start()) if opening[0] == "{{" else None
    if action is not None:
        return action.end()
    closing = template.find("}}" if opening[0] == "{{" else "#}", opening.end())
    return closing + 2 if closing >= 0 else -1


def _translated(written: str, blocks: GoBlocks, is_go_alone: bool) -> tuple[str, str] | None:
    """Return an action as Jinja writes it, with its whitespace marks, and what it lacks.

    Returns None where it is not Go.
    """
    action = _ACTION.fullmatch(written)
    left, right = (action["left"] or "", action["right"] or "") if action else ("", "")
    content = action["content"] if action else written[2:-2].strip()
    if content.startswith("/*") and content.endswith("*/"):
        text = content[2:-2].strip() if is_go_alone else _shown(content[2:-2])
        return _comment(text, left, right), ""
    was_dead = blocks.is_dead
    statement, found, faults = blocks.understood(content)
    if statement is None and (found is None or not (found.is_go or is_go_alone)):
        jinja = None
    elif statement is None:
        jinja = f"{{{{{left} {found.shown().text} {right}}}}}" if found else None
    else:
        jinja = _marked(statement, left, right)
    if not is_go_alone or not faults:
        return (jinja, "") if jinja else None
    comment = _comment(f"not imported: {content}", left, right if statement is None else "")
    jinja = comment if statement is None else comment + _marked(statement, "", right)
    return jinja, "" if was_dead else "; ".join(dict.fromkeys(faults))


def _marked(statements: str, left: str, right: str) -> str:
    """Return statements with whitespace marks before and behind them."""
    return f"{{%{left}{statements.removeprefix('{%').removesuffix('%}')}{right}%}}"
