"""A request to a tracker over HTTP, and what an adapter says of its provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from sortie.http.answers import HttpAnswer, NoJson
from sortie.http.budget import BudgetHeaders, Use
from sortie.http.errors import STATUS_KINDS
from sortie.model import TrackerErrorKind
from sortie.model.hiding import repr_without

Params = Sequence[tuple[str, str | int]]


class HttpRequest(Struct, frozen=True, kw_only=True):
    """One question or change.

    ``path`` begins with ``/`` and is added to the endpoint as it is, or to its server where it is
    ``from_root``: encode what stands in it (``segment``). ``what`` begins an error's text:
    ``cannot read issue 7``. ``body`` is sent as JSON, or ``content`` as it is. ``wanted`` are
    statuses besides success that the caller wants to see instead of an error.
    ``remember``: send the ETag of the last answer. ``follow``: one redirect of a GET on the same
    server is followed. ``signed``: with the credential. ``budget`` names the one it is counted in.
    ``list_at``: where in the answer a list of objects has to be, by the keys that lead there; what
    has none there is an error, and never an empty list.
    ``tail``: the answer is text, of which so many of the last bytes are kept; with ``follow`` a
    redirect may lead to another server then, which is asked without the credential.
    """

    path: str
    what: str
    method: str = "GET"
    params: Params = ()
    body: Any = None
    content: bytes | None = None
    use: Use = Use.READ
    wanted: frozenset[int] = frozenset()
    headers: Mapping[str, str] = field(default_factory=dict)
    from_root: bool = False
    remember: bool = False
    follow: bool = False
    signed: bool = True
    budget: str | None = None
    list_at: tuple[str, ...] | None = None
    tail: int | None = None

    __repr__ = repr_without("headers")

    @property
    def is_change(self) -> bool:
        """Whether it changes something, so that a lost answer has to be looked for."""
        return self.use is Use.WRITE

    @property
    def payload(self) -> dict[str, Any]:
        """What it sends, by the words of the library."""
        return {"json": self.body, "content": self.content}

    def page(self, path: str, params: Params) -> HttpRequest:
        """Return the same question for another page."""
        return replace(self, path=path, params=params)


def error_text_in_json(answer: HttpAnswer) -> str:
    """Return what an answer says about its error, in the shapes that providers use."""
    try:
        body = answer.json()
    except NoJson:
        return answer.text()
    return "; ".join(dict.fromkeys(_texts_in(body))) or answer.text()


def _texts_in(body: Any) -> list[str]:
    if isinstance(body, str):
        return [body]
    if isinstance(body, list):
        return [text for item in body[:10] for text in _texts_in(item)]
    if not isinstance(body, dict):
        return []
    found = []
    for key in ("message", "error", "error_description", "errorMessages"):
        found += _texts_in(body.get(key)) if not isinstance(body.get(key), dict) else []
    for key in ("errors", "message"):
        if isinstance(fields := body.get(key), dict):
            found += [f"{name}: {' '.join(_texts_in(text))}" for name, text in fields.items()]
        elif key == "errors":
            found += _texts_in(fields)
    return [text for text in found if text.strip()]


def _is_429(answer: HttpAnswer) -> bool:
    return answer.status == 429


class Provider(Struct, frozen=True, kw_only=True):
    """What is a provider's own.

    ``kinds`` go before the common table, and ``kind_of``, which sees the whole answer,
    before both. ``is_limit`` tells a refusal for too many requests from others. ``error_text`` is
    what an error says for people. ``at_once`` requests are made at a time; changes begin
    ``change_gap`` seconds apart.
    """

    name: str
    headers: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[int, TrackerErrorKind] = field(default_factory=dict)
    kind_of: Callable[[HttpAnswer], TrackerErrorKind | None] = lambda _answer: None
    budgets: Sequence[BudgetHeaders] = ()
    is_limit: Callable[[HttpAnswer], bool] = _is_429
    error_text: Callable[[HttpAnswer], str] = error_text_in_json
    at_once: int = 4
    change_gap: float = 0.0

    def meaning_of(self, answer: HttpAnswer) -> TrackerErrorKind:
        """Return what a refusal means."""
        common = STATUS_KINDS.get(answer.status, TrackerErrorKind.UNAVAILABLE)
        return self.kind_of(answer) or self.kinds.get(answer.status) or common
