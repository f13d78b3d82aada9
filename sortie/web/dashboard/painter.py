"""Make HTML of pieces and pages; texts that are put into a template are escaped, and lose secrets.

Rule 1: no text reaches a page but through ``Painter``, so nothing has to be escaped elsewhere.
Rule 2: texts are redacted before they are escaped: a secret that looks like a tag breaks no page.
Rule 3: all files are read when this module is loaded, so that no page needs a descriptor.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, cast

from jinja2 import BytecodeCache, DictLoader, Environment, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from sortie import __version__
from sortie.model.numbers import credits_text, dollars_text, number_text, tokens_text, took
from sortie.model.secrets import redactor
from sortie.web.base_path import based
from sortie.web.dashboard import formats
from sortie.web.dashboard.charts import svg
from sortie.web.dashboard.pieces import Part, Piece
from sortie.web.redaction import Secrets
from sortie.web.sign_in import is_signed_in

_HERE = Path(__file__).parent
_TEMPLATES = {path.name: path.read_text("utf-8") for path in (_HERE / "templates").iterdir()}
STATIC = {path.name: path.read_bytes() for path in sorted((_HERE / "static").iterdir())}
_MACROS = "macros.html"
_ID_START = 8


@cache
def static_files() -> Mapping[str, bytes]:
    """Return the files of pages by their names, which change with what is in them."""
    found = {}
    for name, content in STATIC.items():
        stem, _, suffix = name.rpartition(".")
        digest = hashlib.sha256(content).hexdigest()[:12]
        found[f"{stem}.{digest}.{suffix}"] = content
    return found


@cache
def static_path(name: str) -> str:
    """Return the path of a file of pages. Raises KeyError where there is none."""
    stem, _, suffix = name.rpartition(".")
    for known in static_files():
        if known.startswith(f"{stem}.") and known.endswith(f".{suffix}"):
            return f"/static/{known}"
    raise KeyError(name)


class _CompiledTemplates(BytecodeCache):
    """Templates that are compiled once in a process, which takes 0.2 s, and not for each app."""

    def __init__(self) -> None:
        self._code: dict[str, CodeType] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give what was compiled; None has it compiled."""
        bucket.code = self._code.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled."""
        assert bucket.code is not None
        self._code[bucket.key] = bucket.code


_COMPILED = _CompiledTemplates()


class Painter:
    """Templates; the texts that are put into one lose the ``secrets`` in force and are escaped.

    ``base`` is the path that all addresses of Sortie's own are below.
    """

    def __init__(self, secrets: Secrets, base: str = "") -> None:
        self._secrets = secrets
        self._base = base
        self._redact: Callable[[str], str] = str
        environment = Environment(
            loader=DictLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=self._shown,
            auto_reload=False,
            bytecode_cache=_COMPILED,
            trim_blocks=True,
        )
        environment.filters |= {
            "age": formats.age,
            "bar": formats.bar,
            "clock": formats.clock,
            "countdown": formats.countdown,
            "iso": formats.iso,
            "issue_path": formats.issue_path,
            "credits": credits_text,
            "money": dollars_text,
            "number": number_text,
            "tokens": tokens_text,
            "took": took,
            # Cut before it is redacted, half a secret could be left.
            "short": lambda text: formats.short(self._redact(text)),
            "quoted": formats.quoted,
            "start": lambda text: self._redact(text)[:_ID_START],
            "static": static_path,
            "svg": svg,
            "web_url": formats.web_url,
            "request_name": formats.request_name,
            "words": formats.words,
        }
        environment.globals |= {"version": __version__, "several": bool(base)}
        self._environment = environment
        self._macros = cast(Any, environment.get_template(_MACROS).module)

    def paint(self, piece: Piece, now: float, operator: bool) -> str:
        """Make the element of a piece as it is at ``now`` (Unix seconds)."""
        self._redact = redactor(self._secrets())
        return based(str(self._paint(piece, now, operator)), self._base)

    def page(self, template: str, parts: Sequence[Part], values: Mapping[str, object]) -> bytes:
        """Make a page; ``part(ID)`` stands in its template for a piece or list.

        ``values`` have ``now`` and ``operator``, whether the viewer may give commands.
        """
        self._redact = redactor(self._secrets())
        known = {part.id: part for part in parts}
        now, operator = cast(float, values["now"]), bool(values["operator"])

        def part(id_: str) -> Markup:
            found = known[id_]
            if isinstance(found, Piece):
                return self._paint(found, now, operator)
            return Markup("\n").join(self._paint(piece, now, operator) for piece in found.pieces)

        page = self._environment.get_template(template).render(
            {"here": "", "done": "", "part": part, **values}
        )
        return based(page, self._base).encode(errors="backslashreplace")

    def _paint(self, piece: Piece, now: float, operator: bool) -> Markup:
        macro = getattr(self._macros, piece.kind)
        if piece.inner is None:
            return cast(Markup, macro(piece.content, piece.id, now, operator))
        inner = self._paint(piece.inner, now, operator)
        return cast(Markup, macro(piece.content, piece.id, now, operator, inner))

    def _shown(self, value: object) -> object:
        return self._redact(value) if type(value) is str else value

    def answer(
        self,
        request: Request,
        template: str,
        parts: Sequence[Part],
        values: Mapping[str, object],
        status: int = 200,
    ) -> Response:
        """Answer with a page; ``values`` are those that this template needs besides the common."""
        common = {"now": time.time(), "operator": is_signed_in(request)}
        page = self.page(template, parts, {**common, **values})
        return Response(page, status_code=status, media_type="text/html")

    def message(
        self, request: Request, values: Mapping[str, object], status: int = 200
    ) -> Response:
        """Answer with a page of a few words: ``heading``, ``text``, ``back`` is where it leads, and
        ``command`` the path of a command that can be given there, under ``label``."""
        return self.answer(
            request, "message.html", (), {"command": "", "label": "", **values}, status
        )
