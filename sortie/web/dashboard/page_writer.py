"""Answers that are pages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from sortie.web.dashboard.commands import done_words
from sortie.web.dashboard.painter import Painter
from sortie.web.dashboard.pieces import Part
from sortie.web.sign_in import is_signed_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A page of a few words; ``back`` is where it leads, ``command`` the path of a command that
    can be given there, under ``label``."""

    heading: str
    text: str
    back: str
    command: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True)
class PageWriter:
    """Answers with what the painter makes."""

    painter: Painter

    def page(
        self,
        request: Request,
        template: str,
        parts: Sequence[Part],
        values: Mapping[str, object],
        status: int = 200,
    ) -> Response:
        """Answer with a page; ``values`` are those that this template has besides all others."""
        common = {
            "now": time.time(),
            "operator": is_signed_in(request),
            "done": done_words(request.query_params.get("done")),
        }
        page = self.painter.page(template, parts, common | dict(values))
        return Response(page, status_code=status, media_type="text/html")

    def message(self, request: Request, words: Words, status: int = 200) -> Response:
        """Answer with a page of a few words."""
        values = {
            "heading": words.heading,
            "text": words.text,
            "back": words.back,
            "command": words.command,
            "label": words.label,
        }
        return self.page(request, "message.html", (), values, status)
