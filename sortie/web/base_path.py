"""The path below which a workflow is served, where several share a server.

All addresses in the code and in templates are those of a workflow that has a server of its own;
they get the path of theirs where they leave.
"""

from __future__ import annotations

import re

from starlette.requests import Request

BASE = "sortie.base"
"""The scope's key for the path below which a request was made; a sole workflow has none."""

_ATTRIBUTE = r"\b(href|action|src|data-live|data-poll)"
_ADDRESS = re.compile(rf'{_ATTRIBUTE}="/(?!/)')


def base_of(request: Request) -> str:
    """Return the path below which a request was made, such as ``/workflows/docs``, or nothing."""
    base: str = request.scope.get(BASE, "")
    return base


def based(html: str, base: str) -> str:
    """Return HTML whose addresses are below a path; texts in it hold no quotes, as these are
    escaped."""
    return _ADDRESS.sub(rf'\1="{base}/', html) if base else html


def rebased(body: bytes, former: str, base: str) -> bytes:
    """Return a page, or JSON with HTML in it, whose addresses are below ``base`` instead of
    ``former``."""
    if former == base:
        return body
    address = re.compile(rf'{_ATTRIBUTE}=(\\?"){re.escape(former)}/(?!/)'.encode())
    return address.sub(rf"\1=\2{base}/".encode(), body)
