"""Answers to the questions of agents, as the API and the dashboard take them."""

from __future__ import annotations

import json
from urllib.parse import parse_qs

from starlette.requests import Request

from sortie.model.asked_questions import QuestionAnswer
from sortie.model.questions import ANSWER_LIMIT, AnswerWay
from sortie.web.access import Caller
from sortie.web.middleware import CALLER

_OPERATOR = "an operator"

ANSWER_BODY = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {
        "text": {
            "type": "string",
            "minLength": 1,
            "maxLength": ANSWER_LIMIT,
            "description": "the number or the words of an option, or an answer in own words",
        },
        "by": {"type": "string", "description": "the name of who answers, which is not proved"},
    },
}


class NotAnAnswer(Exception):
    """A body holds no answer; the message says what is expected."""


async def answer_in_json(request: Request) -> QuestionAnswer:
    """Return the answer that a request of the API brings. Raises NotAnAnswer."""
    try:
        told = json.loads(await request.body())
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not told.keys() <= {"text", "by"}:
        raise NotAnAnswer('the body is no JSON object with "text" and, if wanted, "by"')
    text, by = told.get("text"), told.get("by", "")
    if not isinstance(text, str) or not isinstance(by, str):
        raise NotAnAnswer('"text" and "by" are texts')
    if not 0 < len(text.strip()) <= ANSWER_LIMIT:
        raise NotAnAnswer(f'"text" has between 1 and {ANSWER_LIMIT} characters')
    return QuestionAnswer(text=text, by=by.strip() or _OPERATOR, way=_way(request))


async def answer_in_form(request: Request) -> QuestionAnswer:
    """Return the answer that a form of a page brings: the button that was pressed, or the text.
    Raises NotAnAnswer."""
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    text = (fields.get("option") or fields.get("text") or [""])[0]
    if not 0 < len(text.strip()) <= ANSWER_LIMIT:
        raise NotAnAnswer(f"An answer has between 1 and {ANSWER_LIMIT} characters.")
    return QuestionAnswer(text=text, by=_OPERATOR, way=_way(request))


def _way(request: Request) -> AnswerWay:
    is_browser = request.scope.get(CALLER) is Caller.SESSION
    return AnswerWay.DASHBOARD if is_browser else AnswerWay.COMMAND
