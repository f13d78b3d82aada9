"""The verdict in a reviewer's last message, which has to be in its form; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from sortie.model import cut
from sortie.model.reviews import FINDINGS_LIMIT, ReviewFinding, ReviewSeverity, ReviewVerdict
from sortie.model.texts import CONTROL, NOT_ON_A_LINE, start_of

FINDING_TEXT_LIMIT = 2000
"""Characters of a finding that are kept."""

PATH_SHOWN = 300
_FAULT_LIMIT = 200
_LARGEST_LINE = 10**7
_FENCE = "```"


class AnsweredVerdict(Struct, frozen=True):
    """What a reviewer has answered; ``omitted`` counts findings beyond FINDINGS_LIMIT."""

    verdict: ReviewVerdict
    findings: tuple[ReviewFinding, ...] = ()
    omitted: int = 0


class _Finding(Struct):
    severity: Literal["must", "should"]
    text: str
    path: str | None = None
    line: Annotated[int, Meta(ge=0, le=_LARGEST_LINE)] | None = None


class _Answer(Struct):
    verdict: Literal["approve", "request_changes"]
    findings: list[_Finding]


_DECODER = msgspec.json.Decoder(_Answer)


def verdict_in(text: str, redact: Callable[[str], str]) -> AnsweredVerdict | str:
    """Return the verdict of a message, or what is wrong with the message.

    ``redact`` takes secrets out of what JSON may have hidden.
    """
    written = _json_in(text)
    if written is None:
        return "there is not exactly one block of JSON in it"
    try:
        answer = _DECODER.decode(written.encode())
    except (ValueError, RecursionError) as exc:  # msgspec's errors, and lone surrogates
        return start_of(NOT_ON_A_LINE.sub(" ", redact(str(exc))), _FAULT_LIMIT)
    findings = tuple(_finding(each, redact) for each in answer.findings if each.text.strip())
    verdict = ReviewVerdict(answer.verdict)
    if verdict is ReviewVerdict.REQUEST_CHANGES and not findings:
        return "it asks for changes and has no finding"
    is_grave = any(each.severity is ReviewSeverity.MUST for each in findings)
    if verdict is ReviewVerdict.APPROVE and is_grave:
        return 'it approves, with a finding that is "must"'
    shown = sorted(findings, key=lambda each: each.severity is not ReviewSeverity.MUST)
    kept = tuple(shown[:FINDINGS_LIMIT])
    return AnsweredVerdict(verdict, kept, len(findings) - len(kept))


def _finding(written: _Finding, redact: Callable[[str], str]) -> ReviewFinding:
    text = CONTROL.sub("\ufffd", redact(written.text.replace("\r\n", "\n"))).strip()
    path = NOT_ON_A_LINE.sub("\ufffd", redact((written.path or "").strip()))
    return ReviewFinding(
        text=cut(text, FINDING_TEXT_LIMIT),
        severity=ReviewSeverity(written.severity),
        path=cut(path, PATH_SHOWN),
        line=written.line or None,
    )


def _json_in(text: str) -> str | None:
    """Return the one block of JSON in a message, or all of it where it is an object by itself."""
    blocks = list(_blocks(text))
    if not blocks and text.strip().startswith("{"):
        return text.strip()
    return blocks[0] if len(blocks) == 1 else None


def _blocks(text: str) -> Iterator[str]:
    """Yield the fenced blocks of JSON in Markdown; one that is not closed is none."""
    info: str | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        word = line.strip()
        if info is None:
            if word.startswith(_FENCE):
                info, lines = word[len(_FENCE) :].strip().casefold(), []
        elif word == _FENCE:
            if info == "json":
                yield "\n".join(lines)
            info = None
        else:
            lines.append(line)
