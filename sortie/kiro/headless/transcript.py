"""What the model said in a headless turn, out of the transcript that Kiro prints for people.

An answer begins with the marker ``> `` and ends at the next one, or where a tool is shown. Kiro
colours the marker, so that it differs from a quotation in an answer; where it is plain, only what
cannot be part of an answer, such as the end of a tool's output, has a marker behind it.
"""

from __future__ import annotations

import re

from sortie.lines import clean_line

ANSWER_MARKER = "> "

_COLOURED = re.compile(r"(?:\x1b\[[0-?]*[ -/]*[@-~])*\x1b\[[0-9;:]*m> ")
_TOOL = re.compile(r"\s*🛠\N{VARIATION SELECTOR-16}?\s+Using tool: ")
_TOOL_ENDED = re.compile(r"\s*● (?:Completed|Execution failed)")


def answers(stdout: bytes) -> list[str]:
    """Return the answers of a transcript in their order, without escapes.

    Where there is no marker, all that was printed is one answer.
    """
    lines = stdout.decode(errors="replace").split("\n")
    coloured = any(_COLOURED.match(_drawn(line)) for line in lines)
    found: list[list[str]] = []
    in_answer, after_tool = False, True
    for raw in lines:
        line = clean_line(raw)
        may_begin = coloured or (after_tool and not in_answer)
        if may_begin and _is_marker(raw, line, coloured=coloured):
            found.append([line.removeprefix(ANSWER_MARKER)])
            in_answer = True
        elif _TOOL.match(line):
            in_answer, after_tool = False, False
        elif _TOOL_ENDED.match(line) and not in_answer:
            after_tool = True
        elif in_answer:
            found[-1].append(line)
    if not found:
        found = [[clean_line(line) for line in lines]]
    texts = ["\n".join(answer).strip("\r\n") for answer in found]
    return [text.rstrip() for text in texts if text.strip()]


def _is_marker(raw: str, line: str, *, coloured: bool) -> bool:
    return bool(_COLOURED.match(_drawn(raw))) if coloured else line.startswith(ANSWER_MARKER)


def _drawn(line: str) -> str:
    """Return what was drawn last on a line, with its escapes."""
    return line.rstrip("\r").rpartition("\r")[2]
